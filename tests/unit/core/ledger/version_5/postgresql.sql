-- SPDX-License-Identifier: Apache-2.0
CREATE TABLE cdc_pipelines (
    name TEXT NOT NULL,
    fingerprint VARCHAR(64),
    lease_token BIGINT NOT NULL,
    lease_owner TEXT,
    lease_since VARCHAR(27),
    lease_until VARCHAR(27),
    lease_dag_id TEXT,
    lease_run_id TEXT,
    lease_task_id TEXT,
    lease_map_index INTEGER,
    lease_try_number INTEGER,
    announced_seq BIGINT,
    PRIMARY KEY (name)
);
CREATE TABLE cdc_progress (
    pipeline TEXT NOT NULL,
    seen_at VARCHAR(27) NOT NULL,
    received VARCHAR(27),
    applied VARCHAR(27),
    lag_seconds FLOAT,
    lag_records BIGINT,
    PRIMARY KEY (pipeline, seen_at)
);
CREATE TABLE cdc_schema_changes (
    pipeline TEXT NOT NULL,
    id TEXT NOT NULL,
    number BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    document JSON NOT NULL,
    PRIMARY KEY (pipeline, id),
    CONSTRAINT cdc_schema_changes_order UNIQUE (pipeline, number)
);
CREATE TABLE cdc_table_versions (
    pipeline TEXT NOT NULL,
    table_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    document JSON,
    PRIMARY KEY (pipeline, table_id, seq)
);
CREATE TABLE cdc_tables (
    pipeline TEXT NOT NULL,
    table_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    document JSON NOT NULL,
    state VARCHAR(20),
    PRIMARY KEY (pipeline, table_id)
);
CREATE INDEX cdc_tables_state ON cdc_tables (state, pipeline);
CREATE TABLE cdc_version (
    version INTEGER NOT NULL,
    ledger_id VARCHAR(32) NOT NULL,
    PRIMARY KEY (version)
);
CREATE TABLE cdc_batches (
    pipeline TEXT NOT NULL,
    seq BIGINT NOT NULL,
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
    dag_id TEXT,
    run_id TEXT,
    task_id TEXT,
    map_index INTEGER,
    try_number INTEGER,
    engine VARCHAR(20),
    application_id TEXT,
    started_at VARCHAR(27),
    PRIMARY KEY (pipeline, seq),
    CONSTRAINT cdc_batches_status CHECK (status IN ('planned', 'committed', 'abandoned')),
    CONSTRAINT cdc_batches_pipeline FOREIGN KEY(pipeline) REFERENCES cdc_pipelines (name)
);
