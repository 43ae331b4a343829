"""Methods that exist only to be compared with: each is a policy like any other, one file each."""
