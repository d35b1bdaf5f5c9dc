"""The shapes of requests of the other protocols, and what the OpenAPI document says of fields."""
