"""What tests use in place of a hub, a device, a disk or a long benchmark, and their faults."""
