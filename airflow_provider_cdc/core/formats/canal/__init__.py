"""Canal's formats: flat JSON and protobuf."""
