"""Planning ahead with macro-actions: an underwater vehicle, a taxi, a robot in corridors."""
