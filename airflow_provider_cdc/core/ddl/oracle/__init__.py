"""DDL of Oracle and of OceanBase's Oracle tenants."""
