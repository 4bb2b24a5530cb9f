"""The transformer: attention, routers, and experts with several back ends."""
