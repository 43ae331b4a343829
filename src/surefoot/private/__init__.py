"""One party holds the data, another looks for the best record."""
