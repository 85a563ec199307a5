// The module is filled by the commits that follow.
