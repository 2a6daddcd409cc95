//! fio engines that issue ordinary block reads and writes, but send them to targets other than the
//! files and devices of this system.

use crate::job::IoEngine;

/// fio engine whose I/Os go to another operating system, to a server, or through another path to a
/// drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignEngine {
    /// fio's name of the engine.
    pub name: &'static str,
    /// Engine for files and devices that generates the same load.
    pub equivalent_engine: IoEngine,
    /// Transport that carries the engine's I/Os to its target.
    pub transport: EngineTransport,
    /// Options that exist only for this engine and define its target.
    pub(crate) options: &'static [&'static str],
}

/// Transport that carries the I/Os of an engine to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineTransport {
    /// Native calls of another operating system on its files and devices.
    OtherOperatingSystem,
    /// Server with its network. The text is a noun phrase that names both.
    Server(&'static str),
    /// Other path to a drive or to memory of this machine. The text is a noun phrase that names it.
    OtherKernelPath(&'static str),
}

impl ForeignEngine {
    /// Reports whether an engine of this system issues the same I/Os on the same files.
    pub fn is_equivalent_here(&self) -> bool {
        self.transport == EngineTransport::OtherOperatingSystem
    }

    /// Returns a note for the report that explains how the load is reproduced.
    pub fn equivalence_note(&self) -> String {
        let name = self.name;
        let same = self.equivalent_engine.name();
        match self.transport {
            EngineTransport::OtherOperatingSystem => {
                format!(
                    "{name} belongs to another operating system; diskperf issues the same I/Os as {same}"
                )
            }
            EngineTransport::Server(what) | EngineTransport::OtherKernelPath(what) => {
                format!(
                    "{name}: the drive receives the job's I/Os directly; {what} are not modelled"
                )
            }
        }
    }

    /// Returns the reason why real storage cannot run this engine, for an error label.
    pub fn unavailable_reason(&self) -> String {
        match self.transport {
            EngineTransport::OtherOperatingSystem => String::new(),
            EngineTransport::Server(what) => {
                format!("its I/Os go to {what}, but diskperf measures files and devices")
            }
            EngineTransport::OtherKernelPath(what) => {
                format!("its I/Os go through {what}, but diskperf's go through the kernel")
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
        equivalent_engine: IoEngine::IoUring,
        transport: carrier,
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
        equivalent_engine: IoEngine::Psync,
        transport: carrier,
        options,
    }
}

const CEPH: EngineTransport = EngineTransport::Server("the cluster and its network");
const SERVER: EngineTransport = EngineTransport::Server("the server and its network");
const PASSTHROUGH: EngineTransport =
    EngineTransport::OtherKernelPath("commands that bypass the block layer");
const PERSISTENT_MEMORY: EngineTransport =
    EngineTransport::OtherKernelPath("loads and stores to mapped memory");
const PLUGIN: EngineTransport = EngineTransport::OtherKernelPath("a plug-in and its drivers");

const FOREIGN_ENGINES: &[ForeignEngine] = &[
    queueing_engine(
        "windowsaio",
        EngineTransport::OtherOperatingSystem,
        &["no_completion_thread"],
    ),
    queueing_engine("solarisaio", EngineTransport::OtherOperatingSystem, &[]),
    queueing_engine("guasi", EngineTransport::OtherOperatingSystem, &[]),
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
    FOREIGN_ENGINES.iter().find(|engine| engine.name == name)
}

/// Returns the name of the first engine that has an option of this name.
pub(crate) fn find_by_option(option: &str) -> Option<&'static str> {
    let engine = FOREIGN_ENGINES
        .iter()
        .find(|engine| engine.options.contains(&option));
    engine.map(|engine| engine.name)
}
