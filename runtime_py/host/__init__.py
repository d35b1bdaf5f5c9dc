"""What stands above tokens, in C++ (app/host), with Python's libraries as its services."""
