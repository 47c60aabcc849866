"""`barnabas plan`: how many machines, partitions, and how much disk, memory and network a load needs."""
