from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Handshake(_message.Message):
    __slots__ = ("communication_encoding", "seeds")
    COMMUNICATION_ENCODING_FIELD_NUMBER: _ClassVar[int]
    SEEDS_FIELD_NUMBER: _ClassVar[int]
    communication_encoding: str
    seeds: bytes
    def __init__(self, communication_encoding: _Optional[str] = ..., seeds: _Optional[bytes] = ...) -> None: ...

class ClientAuth(_message.Message):
    __slots__ = ("username", "password", "net_read_timeout", "net_write_timeout", "destination", "client_id", "filter", "start_timestamp")
    USERNAME_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    NET_READ_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    NET_WRITE_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    START_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    username: str
    password: bytes
    net_read_timeout: int
    net_write_timeout: int
    destination: str
    client_id: str
    filter: str
    start_timestamp: int
    def __init__(self, username: _Optional[str] = ..., password: _Optional[bytes] = ..., net_read_timeout: _Optional[int] = ..., net_write_timeout: _Optional[int] = ..., destination: _Optional[str] = ..., client_id: _Optional[str] = ..., filter: _Optional[str] = ..., start_timestamp: _Optional[int] = ...) -> None: ...

class Sub(_message.Message):
    __slots__ = ("destination", "client_id", "filter")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    destination: str
    client_id: str
    filter: str
    def __init__(self, destination: _Optional[str] = ..., client_id: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class Unsub(_message.Message):
    __slots__ = ("destination", "client_id", "filter")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    destination: str
    client_id: str
    filter: str
    def __init__(self, destination: _Optional[str] = ..., client_id: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class Get(_message.Message):
    __slots__ = ("destination", "client_id", "fetch_size", "timeout", "unit", "auto_ack")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    FETCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    AUTO_ACK_FIELD_NUMBER: _ClassVar[int]
    destination: str
    client_id: str
    fetch_size: int
    timeout: int
    unit: int
    auto_ack: bool
    def __init__(self, destination: _Optional[str] = ..., client_id: _Optional[str] = ..., fetch_size: _Optional[int] = ..., timeout: _Optional[int] = ..., unit: _Optional[int] = ..., auto_ack: _Optional[bool] = ...) -> None: ...

class ClientAck(_message.Message):
    __slots__ = ("destination", "client_id", "batch_id")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    destination: str
    client_id: str
    batch_id: int
    def __init__(self, destination: _Optional[str] = ..., client_id: _Optional[str] = ..., batch_id: _Optional[int] = ...) -> None: ...

class ClientRollback(_message.Message):
    __slots__ = ("destination", "client_id", "batch_id")
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    destination: str
    client_id: str
    batch_id: int
    def __init__(self, destination: _Optional[str] = ..., client_id: _Optional[str] = ..., batch_id: _Optional[int] = ...) -> None: ...
