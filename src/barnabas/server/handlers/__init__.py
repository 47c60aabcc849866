"""One file an API, each ending in its row `HANDLER`. This is the only list of them."""

from barnabas.server.dispatch import Handler
from barnabas.server.handlers import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)

HANDLERS: tuple[Handler, ...] = tuple(
    module.HANDLER
    for module in (
        alter_configs,
        api_versions,
        create_partitions,
        create_topics,
        delete_records,
        delete_topics,
        describe_cluster,
        describe_configs,
        describe_log_dirs,
        describe_producers,
        describe_topic_partitions,
        fetch,
        find_coordinator,
        incremental_alter_configs,
        init_producer_id,
        list_config_resources,
        list_offsets,
        metadata,
        offset_for_leader_epoch,
        produce,
    )
)
