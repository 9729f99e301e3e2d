"""What invited listeners get of a panel test: at its link, and as a folder to take along."""
