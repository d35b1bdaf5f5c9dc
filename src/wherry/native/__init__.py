"""Models for apps: the core, TVM's run time and models' code as libraries of a phone's system."""
