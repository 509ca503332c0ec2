-- SPDX-License-Identifier: Apache-2.0
CREATE TABLE cdc_pipelines (
    name TEXT NOT NULL,
    fingerprint VARCHAR(64),
    lease_token INTEGER NOT NULL,
    lease_owner TEXT,
    lease_since VARCHAR(27),
    lease_until VARCHAR(27),
    PRIMARY KEY (name)
);
CREATE TABLE cdc_schema_changes (
    pipeline TEXT NOT NULL,
    id TEXT NOT NULL,
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    document JSON NOT NULL,
    PRIMARY KEY (pipeline, id),
    CONSTRAINT cdc_schema_changes_order UNIQUE (pipeline, number)
);
CREATE TABLE cdc_table_versions (
    pipeline TEXT NOT NULL,
    table_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    document JSON,
    PRIMARY KEY (pipeline, table_id, seq)
);
CREATE TABLE cdc_tables (
    pipeline TEXT NOT NULL,
    table_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    document JSON NOT NULL,
    PRIMARY KEY (pipeline, table_id)
);
CREATE TABLE cdc_version (
    version INTEGER NOT NULL,
    ledger_id VARCHAR(32) NOT NULL,
    PRIMARY KEY (version)
);
CREATE TABLE cdc_batches (
    pipeline TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind VARCHAR(40) NOT NULL,
    status VARCHAR(20) NOT NULL,
    start JSON NOT NULL,
    "end" JSON NOT NULL,
    until VARCHAR(27),
    planned_at VARCHAR(27) NOT NULL,
    committed_at VARCHAR(27),
    result JSON,
    topics JSON,
    lost JSON,
    PRIMARY KEY (pipeline, seq),
    CONSTRAINT cdc_batches_status CHECK (status IN ('planned', 'committed', 'abandoned')),
    CONSTRAINT cdc_batches_pipeline FOREIGN KEY(pipeline) REFERENCES cdc_pipelines (name)
);
