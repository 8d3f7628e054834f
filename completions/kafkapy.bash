# Written from the definitions of kafkapy's commands: do not edit.
_kafkapy() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local command=${COMP_WORDS[1]} words=
    case ${COMP_WORDS[0]##*/} in
        kafka-acls.sh) command=acls ;;
        kafka-broker-api-versions.sh) command=broker-api-versions ;;
        kafka-client-metrics.sh) command=client-metrics ;;
        kafka-cluster.sh) command=cluster ;;
        kafka-configs.sh) command=configs ;;
        kafka-console-consumer.sh) command=console-consumer ;;
        kafka-console-producer.sh) command=console-producer ;;
        kafka-console-share-consumer.sh) command=console-share-consumer ;;
        kafka-consumer-groups.sh) command=consumer-groups ;;
        kafka-consumer-perf-test.sh) command=consumer-perf ;;
        kafka-delegation-tokens.sh) command=delegation-tokens ;;
        kafka-delete-records.sh) command=delete-records ;;
        kafka-dump-log.sh) command=dump-log-segments ;;
        kafka-e2e-latency.sh) command=e2e-latency ;;
        kafka-features.sh) command=features ;;
        kafka-get-offsets.sh) command=get-offsets ;;
        kafka-groups.sh) command=groups ;;
        kafka-leader-election.sh) command=leader-election ;;
        kafka-log-dirs.sh) command=log-dirs ;;
        kafka-preferred-replica-election.sh) command=preferred-replica-election ;;
        kafka-producer-perf-test.sh) command=producer-perf ;;
        kafka-reassign-partitions.sh) command=reassign ;;
        kafka-replica-verification.sh) command=replica-verification ;;
        kafka-server-start.sh) command=server ;;
        kafka-server-stop.sh) command=server ;;
        kafka-share-groups.sh) command=share-groups ;;
        kafka-topics.sh) command=topics ;;
        kafka-transactions.sh) command=transactions ;;
        kafka-verifiable-consumer.sh) command=verifiable-consumer ;;
        kafka-verifiable-producer.sh) command=verifiable-producer ;;
        kafka-verifiable-share-consumer.sh) command=verifiable-share-consumer ;;
        zookeeper-server-start.sh) command=zookeeper ;;
        zookeeper-server-stop.sh) command=zookeeper ;;
        zookeeper-shell.sh) command=zookeeper-shell ;;
        *) if [ "$COMP_CWORD" -eq 1 ]; then words="server zookeeper cluster topics configs client-metrics reassign leader-election preferred-replica-election log-dirs delete-records console-producer console-consumer console-share-consumer consumer-groups groups share-groups get-offsets producer-perf consumer-perf verifiable-producer verifiable-consumer verifiable-share-consumer replica-verification dump-log-segments dump-log state-change-log-merger transactions features acls delegation-tokens e2e-latency zookeeper-shell broker-api-versions schema-registry schemas agent spark-submit completion version --help --version"
            COMPREPLY=($(compgen -W "$words" -- "$current")); return; fi ;;
    esac
    COMPREPLY=()
    case $command in
        server)
            case $previous in
                --output) words="text table json" ;;
                --override|--processes|--pid|--log-dir|--timeout-ms|--signal|--run-as) return ;;
                *) words="start stop install-service --help --override --daemon --until-eof --processes --pid --log-dir --timeout-ms --signal --run-as --user --output --debug --version" ;;
            esac
            ;;
        zookeeper)
            case $previous in
                --implementation) words="kafkapy apache" ;;
                --output) words="text table json" ;;
                --data-dir|--port|--pid|--timeout-ms|--zookeeper|--zk-tls-config-file) return ;;
                *) words="start stop export import --help --implementation --daemon --data-dir --port --pid --timeout-ms --zookeeper --zk-tls-config-file --overwrite --force --output --debug --version" ;;
            esac
            ;;
        cluster)
            case $previous in
                --zookeeper) words="kafkapy apache" ;;
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--dir|--brokers|--base-port|--config|--id|--override) return ;;
                *) words="start status stop kill restart cluster-id list-endpoints unregister --help --bootstrap-server --command-config --dir --brokers --base-port --zookeeper --config --include-fenced-brokers --id --strict --override --output --debug --version" ;;
            esac
            ;;
        topics)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--zookeeper|--topic|--topic-id|--partitions|--replication-factor|--replica-assignment|--config|--delete-config|--partition-size-limit-per-response) return ;;
                *) words="--help --bootstrap-server --command-config --zookeeper --create --list --describe --alter --delete --topic --topic-id --partitions --replication-factor --replica-assignment --config --delete-config --under-replicated-partitions --unavailable-partitions --under-min-isr-partitions --at-min-isr-partitions --topics-with-overrides --if-exists --if-not-exists --exclude-internal --disable-rack-aware --force --partition-size-limit-per-response --output --debug --version" ;;
            esac
            ;;
        configs)
            case $previous in
                --entity-type) words="topics clients users brokers ips broker-loggers client-metrics groups" ;;
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--zookeeper|--zk-tls-config-file|--entity-name|--topic|--client|--user|--broker|--broker-logger|--ip|--client-metrics|--group|--add-config|--add-config-file|--delete-config) return ;;
                *) words="--help --bootstrap-server --command-config --zookeeper --zk-tls-config-file --describe --alter --all --entity-type --entity-name --entity-default --topic --client --user --broker --broker-logger --ip --client-metrics --group --client-defaults --user-defaults --broker-defaults --ip-defaults --add-config --add-config-file --delete-config --force --output --debug --version" ;;
            esac
            ;;
        client-metrics)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--name|--interval|--match|--metrics) return ;;
                *) words="--help --bootstrap-server --command-config --alter --delete --describe --list --name --generate-name --interval --match --metrics --output --debug --version" ;;
            esac
            ;;
        reassign)
            case $previous in
                --strategy) words="kafka minimal" ;;
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--reassignment-json-file|--topics-to-move-json-file|--broker-list|--decommission|--replication-factor|--throttle|--replica-alter-log-dirs-throttle|--timeout|--batch-size|--zookeeper) return ;;
                *) words="--help --bootstrap-server --command-config --generate --execute --verify --cancel --list --reassignment-json-file --topics-to-move-json-file --broker-list --disable-rack-aware --strategy --decommission --replication-factor --additional --disallow-replication-factor-change --throttle --replica-alter-log-dirs-throttle --preserve-throttles --timeout --batch-size --dry-run --watch --strict --zookeeper --output --debug --version" ;;
            esac
            ;;
        leader-election)
            case $previous in
                --election-type) words="preferred unclean" ;;
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--topic|--partition|--path-to-json-file|--admin.config) return ;;
                *) words="--help --bootstrap-server --command-config --election-type --topic --partition --all-topic-partitions --path-to-json-file --admin.config --dry-run --output --debug --version" ;;
            esac
            ;;
        preferred-replica-election)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--path-to-json-file|--zookeeper|--admin.config) return ;;
                *) words="--help --bootstrap-server --command-config --path-to-json-file --zookeeper --admin.config --output --debug --version" ;;
            esac
            ;;
        log-dirs)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--topic-list|--broker-list) return ;;
                *) words="--help --bootstrap-server --command-config --describe --topic-list --broker-list --output --debug --version" ;;
            esac
            ;;
        delete-records)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--offset-json-file) return ;;
                *) words="--help --bootstrap-server --command-config --offset-json-file --strict --dry-run --output --debug --version" ;;
            esac
            ;;
        console-producer)
            case $previous in
                --compression-codec) words="none gzip snappy lz4 zstd" ;;
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--broker-list|--topic|--batch-size|--max-partition-memory-bytes|--message-send-max-retries|--retry-backoff-ms|--timeout|--request-required-acks|--request-timeout-ms|--metadata-expiry-ms|--max-block-ms|--max-memory-bytes|--socket-buffer-size|--line-reader|--property|--reader-config|--producer-property|--producer.config) return ;;
                *) words="--help --bootstrap-server --command-config --broker-list --topic --sync --compression-codec --batch-size --max-partition-memory-bytes --message-send-max-retries --retry-backoff-ms --timeout --request-required-acks --request-timeout-ms --metadata-expiry-ms --max-block-ms --max-memory-bytes --socket-buffer-size --line-reader --property --reader-config --producer-property --producer.config --output --debug --version" ;;
            esac
            ;;
        console-consumer)
            case $previous in
                --isolation-level) words="read_uncommitted read_committed" ;;
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--topic|--include|--whitelist|--partition|--offset|--max-messages|--timeout-ms|--group|--formatter|--property|--formatter-config|--key-deserializer|--value-deserializer|--consumer-property|--consumer.config) return ;;
                *) words="--help --bootstrap-server --command-config --topic --include --whitelist --partition --offset --from-beginning --max-messages --timeout-ms --group --isolation-level --formatter --property --formatter-config --key-deserializer --value-deserializer --skip-message-on-error --enable-systest-events --consumer-property --consumer.config --output --debug --version" ;;
            esac
            ;;
        console-share-consumer)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--topic|--group|--max-messages|--timeout-ms|--formatter|--formatter-property|--formatter-config|--key-deserializer|--value-deserializer|--command-property|--consumer-config) return ;;
                *) words="--help --bootstrap-server --command-config --topic --group --max-messages --timeout-ms --release --reject --reject-message-on-error --formatter --formatter-property --formatter-config --key-deserializer --value-deserializer --command-property --consumer-config --enable-systest-events --output --debug --version" ;;
            esac
            ;;
        consumer-groups)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--validate-regex|--group|--topic|--state|--type|--to-offset|--shift-by|--to-datetime|--by-duration|--from-file|--timeout) return ;;
                *) words="--help --bootstrap-server --command-config --list --describe --delete --reset-offsets --delete-offsets --validate-regex --group --all-groups --topic --all-topics --members --offsets --state --type --verbose --to-offset --to-earliest --to-latest --shift-by --to-datetime --by-duration --from-file --to-current --dry-run --execute --export --timeout --strict --output --debug --version" ;;
            esac
            ;;
        groups)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--group-type|--protocol) return ;;
                *) words="--help --bootstrap-server --command-config --list --group-type --protocol --consumer --share --streams --output --debug --version" ;;
            esac
            ;;
        share-groups)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--group|--topic|--state|--to-datetime|--timeout) return ;;
                *) words="--help --bootstrap-server --command-config --list --describe --delete --reset-offsets --delete-offsets --group --all-groups --topic --all-topics --members --offsets --state --verbose --to-earliest --to-latest --to-datetime --dry-run --execute --timeout --strict --output --debug --version" ;;
            esac
            ;;
        get-offsets)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--broker-list|--topic|--partitions|--topic-partitions|--time) return ;;
                *) words="--help --bootstrap-server --command-config --broker-list --topic --partitions --topic-partitions --time --exclude-internal-topics --output --debug --version" ;;
            esac
            ;;
        producer-perf)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--topic|--num-records|--throughput|--record-size|--payload-file|--payload-delimiter|--producer-props|--producer.config|--warmup-records|--reporting-interval|--transactional-id|--transaction-duration-ms) return ;;
                *) words="--help --bootstrap-server --command-config --topic --num-records --throughput --record-size --payload-file --payload-monotonic --payload-delimiter --producer-props --producer.config --warmup-records --reporting-interval --print-metrics --transactional-id --transaction-duration-ms --output --debug --version" ;;
            esac
            ;;
        consumer-perf)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--broker-list|--topic|--include|--messages|--group|--fetch-size|--socket-buffer-size|--consumer.config|--command-property|--timeout|--reporting-interval|--date-format|--threads|--num-fetch-threads) return ;;
                *) words="--help --bootstrap-server --command-config --broker-list --topic --include --messages --group --fetch-size --from-latest --socket-buffer-size --consumer.config --command-property --print-metrics --show-detailed-stats --timeout --reporting-interval --date-format --hide-header --threads --num-fetch-threads --output --debug --version" ;;
            esac
            ;;
        verifiable-producer)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--broker-list|--topic|--max-messages|--throughput|--acks|--producer.config|--message-create-time|--value-prefix|--repeating-keys) return ;;
                *) words="--help --bootstrap-server --command-config --broker-list --topic --max-messages --throughput --acks --producer.config --message-create-time --value-prefix --repeating-keys --output --debug --version" ;;
            esac
            ;;
        verifiable-consumer)
            case $previous in
                --reset-policy) words="earliest latest none" ;;
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--broker-list|--topic|--group-id|--group-instance-id|--group-protocol|--group-remote-assignor|--max-messages|--session-timeout|--assignment-strategy|--consumer.config) return ;;
                *) words="--help --bootstrap-server --command-config --broker-list --topic --group-id --group-instance-id --group-protocol --group-remote-assignor --max-messages --session-timeout --verbose --enable-autocommit --reset-policy --assignment-strategy --consumer.config --output --debug --version" ;;
            esac
            ;;
        verifiable-share-consumer)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--topic|--group-id|--max-messages) return ;;
                *) words="--help --bootstrap-server --command-config --topic --group-id --max-messages --verbose --output --debug --version" ;;
            esac
            ;;
        replica-verification)
            case $previous in
                --output) words="text table json" ;;
                --broker-list|--bootstrap-server|--command-config|--topics-include|--topic-white-list|--fetch-size|--max-wait-ms|--report-interval-ms|--time) return ;;
                *) words="--help --broker-list --bootstrap-server --command-config --topics-include --topic-white-list --fetch-size --max-wait-ms --report-interval-ms --time --once --output --debug --version" ;;
            esac
            ;;
        dump-log-segments)
            case $previous in
                --output) words="text table json" ;;
                --files|--key-decoder-class|--value-decoder-class|--max-message-size|--max-bytes|--verify) return ;;
                *) words="--help --files --deep-iteration --print-data-log --skip-record-metadata --key-decoder-class --value-decoder-class --offsets-decoder --transaction-log-decoder --share-group-state-decoder --index-sanity-check --verify-index-only --max-message-size --max-bytes --verify --strict --output --debug --version" ;;
            esac
            ;;
        dump-log)
            case $previous in
                --output) words="text table json" ;;
                --files|--key-decoder-class|--value-decoder-class|--max-message-size|--max-bytes|--verify) return ;;
                *) words="--help --files --deep-iteration --print-data-log --skip-record-metadata --key-decoder-class --value-decoder-class --offsets-decoder --transaction-log-decoder --share-group-state-decoder --index-sanity-check --verify-index-only --max-message-size --max-bytes --verify --strict --output --debug --version" ;;
            esac
            ;;
        state-change-log-merger)
            case $previous in
                --output) words="text table json" ;;
                --logs|--logs-regex|--topic|--partitions|--start-time|--end-time|--timeline) return ;;
                *) words="--help --logs --logs-regex --topic --partitions --start-time --end-time --timeline --output --debug --version" ;;
            esac
            ;;
        transactions)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--duration-filter|--transactional-id-pattern|--transactional-id|--topic|--partition|--broker-id|--start-offset|--producer-id|--producer-epoch|--coordinator-epoch|--max-transaction-timeout) return ;;
                *) words="list describe describe-producers abort find-hanging forceTerminateTransaction --help --bootstrap-server --command-config --duration-filter --transactional-id-pattern --transactional-id --topic --partition --broker-id --start-offset --producer-id --producer-epoch --coordinator-epoch --max-transaction-timeout --output --debug --version" ;;
            esac
            ;;
        features)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--feature|--metadata|--release-version) return ;;
                *) words="describe upgrade downgrade disable version-mapping feature-dependencies --help --bootstrap-server --command-config --feature --metadata --release-version --unsafe --dry-run --output --debug --version" ;;
            esac
            ;;
        acls)
            case $previous in
                --resource-pattern-type) words="literal prefixed any match" ;;
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--topic|--group|--transactional-id|--delegation-token|--user-principal|--allow-principal|--deny-principal|--allow-host|--deny-host|--operation|--principal) return ;;
                *) words="--help --bootstrap-server --command-config --add --remove --list --topic --group --transactional-id --delegation-token --user-principal --cluster --resource-pattern-type --allow-principal --deny-principal --allow-host --deny-host --operation --producer --idempotent --consumer --principal --force --output --debug --version" ;;
            esac
            ;;
        delegation-tokens)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--owner-principal|--renewer-principal|--max-life-time-period|--renew-time-period|--expiry-time-period|--hmac) return ;;
                *) words="--help --bootstrap-server --command-config --create --describe --renew --expire --owner-principal --renewer-principal --max-life-time-period --renew-time-period --expiry-time-period --hmac --output --debug --version" ;;
            esac
            ;;
        e2e-latency)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config) return ;;
                *) words="--help --bootstrap-server --command-config --output --debug --version" ;;
            esac
            ;;
        zookeeper-shell)
            case $previous in
                --output) words="text table json" ;;
                *) words="--help --output --debug --version" ;;
            esac
            ;;
        broker-api-versions)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config) return ;;
                *) words="--help --bootstrap-server --command-config --output --debug --version" ;;
            esac
            ;;
        schema-registry)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--listener|--topic|--tls-certificate|--tls-key|--users) return ;;
                *) words="--help --bootstrap-server --command-config --listener --topic --tls-certificate --tls-key --users --output --debug --version" ;;
            esac
            ;;
        schemas)
            case $previous in
                --schema-type) words="AVRO JSON PROTOBUF" ;;
                --compatibility) words="BACKWARD BACKWARD_TRANSITIVE FORWARD FORWARD_TRANSITIVE FULL FULL_TRANSITIVE NONE" ;;
                --output) words="text table json" ;;
                --schema-registry|--command-config|--subject|--schema-version|--schema-file|--reference) return ;;
                *) words="--help --schema-registry --command-config --list --describe --register --check --delete --alter --subject --schema-version --schema-file --schema-type --reference --compatibility --deleted --permanent --output --debug --version" ;;
            esac
            ;;
        agent)
            case $previous in
                --output) words="text table json" ;;
                --bootstrap-server|--command-config|--topic|--state|--poll-ms|--producer-property) return ;;
                *) words="--help --bootstrap-server --command-config --topic --state --from-end --once --poll-ms --producer-property --output --debug --version" ;;
            esac
            ;;
        spark-submit)
            case $previous in
                --output) words="text table json" ;;
                --from|--columns|--to|--checkpoint|--sql|--schema|--schema-registry|--from-subject|--from-message|--from-key-subject|--from-key-message|--to-subject|--to-message|--to-key-subject|--to-key-message|--metrics-port|--bootstrap-server|--command-config) return ;;
                *) words="--help --from --columns --to --checkpoint --sql --schema --schema-registry --from-subject --from-message --from-key-subject --from-key-message --keep-corrupt-records --to-subject --to-message --to-key-subject --to-key-message --once --metrics-port --bootstrap-server --command-config --output --debug --version" ;;
            esac
            ;;
        completion)
            case $previous in
                --shell) words="bash zsh fish" ;;
                --output) words="text table json" ;;
                *) words="install uninstall show --help --shell --dry-run --output --debug --version" ;;
            esac
            ;;
        version)
            case $previous in
                --output) words="text table json" ;;
                *) words="--help --output --debug --version" ;;
            esac
            ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _kafkapy kafkapy
complete -o default -F _kafkapy kafka-acls.sh
complete -o default -F _kafkapy kafka-broker-api-versions.sh
complete -o default -F _kafkapy kafka-client-metrics.sh
complete -o default -F _kafkapy kafka-cluster.sh
complete -o default -F _kafkapy kafka-configs.sh
complete -o default -F _kafkapy kafka-console-consumer.sh
complete -o default -F _kafkapy kafka-console-producer.sh
complete -o default -F _kafkapy kafka-console-share-consumer.sh
complete -o default -F _kafkapy kafka-consumer-groups.sh
complete -o default -F _kafkapy kafka-consumer-perf-test.sh
complete -o default -F _kafkapy kafka-delegation-tokens.sh
complete -o default -F _kafkapy kafka-delete-records.sh
complete -o default -F _kafkapy kafka-dump-log.sh
complete -o default -F _kafkapy kafka-e2e-latency.sh
complete -o default -F _kafkapy kafka-features.sh
complete -o default -F _kafkapy kafka-get-offsets.sh
complete -o default -F _kafkapy kafka-groups.sh
complete -o default -F _kafkapy kafka-leader-election.sh
complete -o default -F _kafkapy kafka-log-dirs.sh
complete -o default -F _kafkapy kafka-preferred-replica-election.sh
complete -o default -F _kafkapy kafka-producer-perf-test.sh
complete -o default -F _kafkapy kafka-reassign-partitions.sh
complete -o default -F _kafkapy kafka-replica-verification.sh
complete -o default -F _kafkapy kafka-server-start.sh
complete -o default -F _kafkapy kafka-server-stop.sh
complete -o default -F _kafkapy kafka-share-groups.sh
complete -o default -F _kafkapy kafka-topics.sh
complete -o default -F _kafkapy kafka-transactions.sh
complete -o default -F _kafkapy kafka-verifiable-consumer.sh
complete -o default -F _kafkapy kafka-verifiable-producer.sh
complete -o default -F _kafkapy kafka-verifiable-share-consumer.sh
complete -o default -F _kafkapy zookeeper-server-start.sh
complete -o default -F _kafkapy zookeeper-server-stop.sh
complete -o default -F _kafkapy zookeeper-shell.sh
