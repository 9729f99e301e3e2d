"""The voices of the page: menus beside the script, and the panel that keeps and changes them."""
