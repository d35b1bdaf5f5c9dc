"""Access control: Host, Origin, keys, quotas, tenants."""
