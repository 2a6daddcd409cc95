//! fio engines that issue ordinary block reads and writes, but send them to targets other than the
//! files and devices of this system.

use crate::job::Engine;

/// fio engine whose I/Os go to another operating system, to a server, or through another path to a
/// drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignEngine {
    /// fio's name of the engine.
    pub name: &'static str,
    /// Engine for files and devices that generates the same load.
    pub same_load_as: Engine,
    /// Transport that carries the engine's I/Os to its target.
    pub carrier: EngineTransport,
    /// Options that exist only for this engine and define its target.
    pub(crate) options: &'static [&'static str],
}

/// Transport that carries the I/Os of an engine to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineTransport {
    /// Native calls of another operating system on its files and devices.
    OtherSystem,
    /// Server with its network. The text is a noun phrase that names both.
    Server(&'static str),
    /// Other path to a drive or to memory of this machine. The text is a noun phrase that names it.
    OtherPath(&'static str),
}

impl ForeignEngine {
    /// Reports whether an engine of this system issues the same I/Os on the same files.
    pub fn is_native(&self) -> bool {
        self.carrier == EngineTransport::OtherSystem
    }

    /// Returns a note for the report that explains how the load is reproduced.
    pub fn note(&self) -> String {
        let name = self.name;
        let same = self.same_load_as.name();
        match self.carrier {
            EngineTransport::OtherSystem => {
                format!(
                    "{name} is of another operating system: the same I/Os are issued as by {same}"
                )
            }
            EngineTransport::Server(what) | EngineTransport::OtherPath(what) => {
                format!("{name}: the drive gets the job's I/Os directly; {what} are not modelled")
            }
        }
    }

    /// Returns the reason why real storage cannot run this engine, for an error label.
    pub fn why_not_here(&self) -> String {
        match self.carrier {
            EngineTransport::OtherSystem => String::new(),
            EngineTransport::Server(what) => {
                format!("its I/Os go to {what}, and diskperf measures files and devices")
            }
            EngineTransport::OtherPath(what) => {
                format!("its I/Os go through {what}, and diskperf's through the kernel")
            }
        }
    }
}

const fn queueing_engine(
    name: &'static str,
    carrier: EngineTransport,
    options: &'static [&'static str],
) -> ForeignEngine {
    ForeignEngine {
        name,
        same_load_as: Engine::IoUring,
        carrier,
        options,
    }
}

const fn calling_engine(
    name: &'static str,
    carrier: EngineTransport,
    options: &'static [&'static str],
) -> ForeignEngine {
    ForeignEngine {
        name,
        same_load_as: Engine::Psync,
        carrier,
        options,
    }
}

const CEPH: EngineTransport = EngineTransport::Server("the cluster and its network");
const SERVER: EngineTransport = EngineTransport::Server("the server and its network");
const PASSTHROUGH: EngineTransport = EngineTransport::OtherPath("commands past the block layer");
const PERSISTENT_MEMORY: EngineTransport =
    EngineTransport::OtherPath("loads and stores of mapped memory");
const PLUGIN: EngineTransport = EngineTransport::OtherPath("a plug-in and its drivers");

const ALL: &[ForeignEngine] = &[
    queueing_engine(
        "windowsaio",
        EngineTransport::OtherSystem,
        &["no_completion_thread"],
    ),
    queueing_engine("solarisaio", EngineTransport::OtherSystem, &[]),
    queueing_engine("guasi", EngineTransport::OtherSystem, &[]),
    queueing_engine(
        "rbd",
        CEPH,
        &["clustername", "rbdname", "pool", "clientname", "busy_poll"],
    ),
    queueing_engine(
        "rados",
        CEPH,
        &[
            "clustername",
            "pool",
            "clientname",
            "conf",
            "busy_poll",
            "touch_objects",
        ],
    ),
    calling_engine("gfapi", SERVER, &["volume", "brick", "single-instance"]),
    queueing_engine(
        "gfapi_async",
        SERVER,
        &["volume", "brick", "single-instance"],
    ),
    queueing_engine("nbd", SERVER, &["uri"]),
    queueing_engine("nfs", SERVER, &["nfs_url"]),
    queueing_engine("libiscsi", SERVER, &["initiator"]),
    calling_engine(
        "libhdfs",
        SERVER,
        &[
            "namenode",
            "hostname",
            "port",
            "hdfsdirectory",
            "chunk_size",
            "single_instance",
            "hdfs_use_direct",
        ],
    ),
    queueing_engine(
        "dfs",
        SERVER,
        &["pool", "cont", "chunk_size", "object_class", "svcl"],
    ),
    calling_engine(
        "http",
        SERVER,
        &[
            "https",
            "http_host",
            "http_user",
            "http_pass",
            "http_s3_key",
            "http_s3_keyid",
            "http_s3_region",
            "http_s3_sse_customer_key",
            "http_s3_sse_customer_algorithm",
            "http_s3_storage_class",
            "http_swift_auth_token",
            "http_mode",
            "http_verbose",
        ],
    ),
    queueing_engine(
        "io_uring_cmd",
        PASSTHROUGH,
        &[
            "cmd_type",
            "md_per_io_size",
            "pi_act",
            "pi_chk",
            "apptag",
            "apptag_mask",
        ],
    ),
    queueing_engine(
        "sg",
        PASSTHROUGH,
        &["hipri", "readfua", "writefua", "sg_write_mode", "stream_id"],
    ),
    queueing_engine(
        "xnvme",
        PASSTHROUGH,
        &[
            "hipri",
            "sqthread_poll",
            "xnvme_be",
            "xnvme_async",
            "xnvme_sync",
            "xnvme_admin",
            "xnvme_mem",
            "xnvme_dev_nsid",
            "xnvme_dev_subnqn",
            "xnvme_iovec",
        ],
    ),
    queueing_engine(
        "libblkio",
        PASSTHROUGH,
        &[
            "libblkio_driver",
            "libblkio_path",
            "libblkio_pre_connect_props",
            "libblkio_num_entries",
            "libblkio_queue_size",
            "libblkio_pre_start_props",
            "hipri",
            "libblkio_vectored",
            "libblkio_write_zeroes_on_trim",
            "libblkio_wait_mode",
            "libblkio_force_enable_completion_eventfd",
        ],
    ),
    calling_engine("dev-dax", PERSISTENT_MEMORY, &[]),
    calling_engine("libpmem", PERSISTENT_MEMORY, &[]),
    calling_engine("pmemblk", PERSISTENT_MEMORY, &[]),
    queueing_engine(
        "external",
        PLUGIN,
        &[
            "spdk_conf",
            "spdk_json_conf",
            "spdk_mem",
            "spdk_single_seg",
            "mem_size_mb",
            "shm_id",
            "mem_mb",
            "enable_sgl",
            "hostnqn",
            "pi_act",
            "pi_chk",
            "md_per_io_size",
            "apptag",
            "apptag_mask",
            "digest_enable",
            "enable_vmd",
            "initial_zone_reset",
            "zone_append",
            "print_qid_mappings",
            "log_flags",
            "disable_pcie_sgl_merge",
            "spdk_tracing",
            "spdk_rpc_listen_addr",
        ],
    ),
];

/// Finds an engine by name. The name `external:PATH` matches for any path.
pub(crate) fn find_by_name(name: &str) -> Option<&'static ForeignEngine> {
    let name = match name.split_once(':') {
        Some(("external", _)) => "external",
        _ => name,
    };
    ALL.iter().find(|engine| engine.name == name)
}

/// Returns the name of the first engine that has an option of this name.
pub(crate) fn find_by_option(option: &str) -> Option<&'static str> {
    let engine = ALL.iter().find(|engine| engine.options.contains(&option));
    engine.map(|engine| engine.name)
}
