"""Long scripts on the page: made in parts, which are listed, played and made again."""
