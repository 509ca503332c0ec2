"""Hooks: Kafka as the planner and the sensors need it, and connections resolved into plain options."""
