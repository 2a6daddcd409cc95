//! fio engines that issue ordinary block reads and writes, but send them to targets other than the
//! files and devices of this system.

use crate::job::Engine;

/// fio engine whose I/Os go to another operating system, to a server, or through another path to a
/// drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// fio's name of the engine.
    pub name: &'static str,
    /// Engine for files and devices that generates the same load.
    pub same_load_as: Engine,
    /// Transport that carries the engine's I/Os to its target.
    pub carrier: Carrier,
    /// Options that exist only for this engine and define its target.
    pub(crate) options: &'static [&'static str],
}

/// Transport that carries the I/Os of an engine to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Native calls of another operating system on its files and devices.
    OtherSystem,
    /// Server with its network. The text is a noun phrase that names both.
    Server(&'static str),
    /// Other path to a drive or to memory of this machine. The text is a noun phrase that names it.
    Passage(&'static str),
}

impl Elsewhere {
    /// Reports whether an engine of this system issues the same I/Os on the same files.
    pub fn is_same_here(&self) -> bool {
        self.carrier == Carrier::OtherSystem
    }

    /// Returns a note for the report that explains how the load is reproduced.
    pub fn note(&self) -> String {
        let name = self.name;
        let same = self.same_load_as.name();
        match self.carrier {
            Carrier::OtherSystem => {
                format!(
                    "{name} is of another operating system: the same I/Os are issued as by {same}"
                )
            }
            Carrier::Server(what) | Carrier::Passage(what) => {
                format!("{name}: the drive gets the job's I/Os directly; {what} are not modelled")
            }
        }
    }

    /// Returns the reason why real storage cannot run this engine, for an error label.
    pub fn why_not_here(&self) -> String {
        match self.carrier {
            Carrier::OtherSystem => String::new(),
            Carrier::Server(what) => {
                format!("its I/Os go to {what}, and diskperf measures files and devices")
            }
            Carrier::Passage(what) => {
                format!("its I/Os go through {what}, and diskperf's through the kernel")
            }
        }
    }
}

const fn queued(
    name: &'static str,
    carrier: Carrier,
    options: &'static [&'static str],
) -> Elsewhere {
    Elsewhere {
        name,
        same_load_as: Engine::IoUring,
        carrier,
        options,
    }
}

const fn called(
    name: &'static str,
    carrier: Carrier,
    options: &'static [&'static str],
) -> Elsewhere {
    Elsewhere {
        name,
        same_load_as: Engine::Psync,
        carrier,
        options,
    }
}

const CEPH: Carrier = Carrier::Server("the cluster and its network");
const SERVER: Carrier = Carrier::Server("the server and its network");
const PASSTHROUGH: Carrier = Carrier::Passage("commands past the block layer");
const PERSISTENT_MEMORY: Carrier = Carrier::Passage("loads and stores of mapped memory");
const PLUGIN: Carrier = Carrier::Passage("a plug-in and its drivers");

const ALL: &[Elsewhere] = &[
    queued(
        "windowsaio",
        Carrier::OtherSystem,
        &["no_completion_thread"],
    ),
    queued("solarisaio", Carrier::OtherSystem, &[]),
    queued("guasi", Carrier::OtherSystem, &[]),
    queued(
        "rbd",
        CEPH,
        &["clustername", "rbdname", "pool", "clientname", "busy_poll"],
    ),
    queued(
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
    called("gfapi", SERVER, &["volume", "brick", "single-instance"]),
    queued(
        "gfapi_async",
        SERVER,
        &["volume", "brick", "single-instance"],
    ),
    queued("nbd", SERVER, &["uri"]),
    queued("nfs", SERVER, &["nfs_url"]),
    queued("libiscsi", SERVER, &["initiator"]),
    called(
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
    queued(
        "dfs",
        SERVER,
        &["pool", "cont", "chunk_size", "object_class", "svcl"],
    ),
    called(
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
    queued(
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
    queued(
        "sg",
        PASSTHROUGH,
        &["hipri", "readfua", "writefua", "sg_write_mode", "stream_id"],
    ),
    queued(
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
    queued(
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
    called("dev-dax", PERSISTENT_MEMORY, &[]),
    called("libpmem", PERSISTENT_MEMORY, &[]),
    called("pmemblk", PERSISTENT_MEMORY, &[]),
    queued(
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
pub(crate) fn named(name: &str) -> Option<&'static Elsewhere> {
    let name = match name.split_once(':') {
        Some(("external", _)) => "external",
        _ => name,
    };
    ALL.iter().find(|engine| engine.name == name)
}

/// Returns the name of the first engine that has an option of this name.
pub(crate) fn with_option(option: &str) -> Option<&'static str> {
    let engine = ALL.iter().find(|engine| engine.options.contains(&option));
    engine.map(|engine| engine.name)
}
