"""What a running app says about itself to those who watch it."""
