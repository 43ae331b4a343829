"""FTS: federated Thompson sampling, parties that send one draw of their belief."""
