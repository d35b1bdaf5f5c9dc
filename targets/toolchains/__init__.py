"""Programs and libraries beyond TVM that generate and link a target's code."""
