"""Plans turned into words; the only room with ms, kW, GB and colours."""
