"""What says that speech is synthetic: the tags of files, and a notice that is heard."""
