from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Record(_message.Message):
    __slots__ = ("type", "compression", "body")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    COMPRESSION_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    type: int
    compression: int
    body: Messages
    def __init__(self, type: _Optional[int] = ..., compression: _Optional[int] = ..., body: _Optional[_Union[Messages, _Mapping]] = ...) -> None: ...

class Messages(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[Entry]
    def __init__(self, messages: _Optional[_Iterable[_Union[Entry, _Mapping]]] = ...) -> None: ...

class Entry(_message.Message):
    __slots__ = ("header", "entryType", "storeValue")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ENTRYTYPE_FIELD_NUMBER: _ClassVar[int]
    STOREVALUE_FIELD_NUMBER: _ClassVar[int]
    header: Header
    entryType: int
    storeValue: RowChange
    def __init__(self, header: _Optional[_Union[Header, _Mapping]] = ..., entryType: _Optional[int] = ..., storeValue: _Optional[_Union[RowChange, _Mapping]] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("logfileName", "logfileOffset", "executeTime", "schemaName", "tableName", "props", "gtid")
    LOGFILENAME_FIELD_NUMBER: _ClassVar[int]
    LOGFILEOFFSET_FIELD_NUMBER: _ClassVar[int]
    EXECUTETIME_FIELD_NUMBER: _ClassVar[int]
    SCHEMANAME_FIELD_NUMBER: _ClassVar[int]
    TABLENAME_FIELD_NUMBER: _ClassVar[int]
    PROPS_FIELD_NUMBER: _ClassVar[int]
    GTID_FIELD_NUMBER: _ClassVar[int]
    logfileName: str
    logfileOffset: int
    executeTime: int
    schemaName: str
    tableName: str
    props: _containers.RepeatedScalarFieldContainer[bytes]
    gtid: str
    def __init__(self, logfileName: _Optional[str] = ..., logfileOffset: _Optional[int] = ..., executeTime: _Optional[int] = ..., schemaName: _Optional[str] = ..., tableName: _Optional[str] = ..., props: _Optional[_Iterable[bytes]] = ..., gtid: _Optional[str] = ...) -> None: ...

class Pair(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class RowChange(_message.Message):
    __slots__ = ("eventType", "isDdl", "sql", "rowDatas", "ddlSchemaName")
    EVENTTYPE_FIELD_NUMBER: _ClassVar[int]
    ISDDL_FIELD_NUMBER: _ClassVar[int]
    SQL_FIELD_NUMBER: _ClassVar[int]
    ROWDATAS_FIELD_NUMBER: _ClassVar[int]
    DDLSCHEMANAME_FIELD_NUMBER: _ClassVar[int]
    eventType: int
    isDdl: bool
    sql: str
    rowDatas: _containers.RepeatedCompositeFieldContainer[RowData]
    ddlSchemaName: str
    def __init__(self, eventType: _Optional[int] = ..., isDdl: _Optional[bool] = ..., sql: _Optional[str] = ..., rowDatas: _Optional[_Iterable[_Union[RowData, _Mapping]]] = ..., ddlSchemaName: _Optional[str] = ...) -> None: ...

class RowData(_message.Message):
    __slots__ = ("beforeColumns", "afterColumns")
    BEFORECOLUMNS_FIELD_NUMBER: _ClassVar[int]
    AFTERCOLUMNS_FIELD_NUMBER: _ClassVar[int]
    beforeColumns: _containers.RepeatedScalarFieldContainer[bytes]
    afterColumns: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, beforeColumns: _Optional[_Iterable[bytes]] = ..., afterColumns: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("index", "sqlType", "name", "isKey", "isNull", "value", "mysqlType")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SQLTYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ISKEY_FIELD_NUMBER: _ClassVar[int]
    ISNULL_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    MYSQLTYPE_FIELD_NUMBER: _ClassVar[int]
    index: int
    sqlType: int
    name: str
    isKey: bool
    isNull: bool
    value: str
    mysqlType: str
    def __init__(self, index: _Optional[int] = ..., sqlType: _Optional[int] = ..., name: _Optional[str] = ..., isKey: _Optional[bool] = ..., isNull: _Optional[bool] = ..., value: _Optional[str] = ..., mysqlType: _Optional[str] = ...) -> None: ...

class Ends(_message.Message):
    __slots__ = ("body",)
    BODY_FIELD_NUMBER: _ClassVar[int]
    body: EndMessages
    def __init__(self, body: _Optional[_Union[EndMessages, _Mapping]] = ...) -> None: ...

class EndMessages(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[EndEntry]
    def __init__(self, messages: _Optional[_Iterable[_Union[EndEntry, _Mapping]]] = ...) -> None: ...

class EndEntry(_message.Message):
    __slots__ = ("storeValue",)
    STOREVALUE_FIELD_NUMBER: _ClassVar[int]
    storeValue: TransactionEnd
    def __init__(self, storeValue: _Optional[_Union[TransactionEnd, _Mapping]] = ...) -> None: ...

class TransactionEnd(_message.Message):
    __slots__ = ("transactionId",)
    TRANSACTIONID_FIELD_NUMBER: _ClassVar[int]
    transactionId: str
    def __init__(self, transactionId: _Optional[str] = ...) -> None: ...
