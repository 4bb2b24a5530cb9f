"""All that one paper knows, in one folder a study; the core never imports a study."""
