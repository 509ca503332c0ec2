"""OceanBase Migration Service's formats (OMS), one for each method."""
