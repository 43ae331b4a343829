"""The choice whose worst case is best."""
