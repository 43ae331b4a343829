"""DP-FTS-DE: private federated Thompson sampling with distributed exploration."""
