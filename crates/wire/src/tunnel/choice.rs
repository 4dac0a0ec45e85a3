//! The choices of tunnels: of their packets, and of what a port carries.

ringtap_base::choices! {
    /// Which packets of tunnels are analysed.
    #[derive(Default)]
    pub enum Tunnels: "choice of tunnels" {
        /// The outer packets: a tunnel is traffic between its two ends.
        Outer = "outer",
        /// The inner packets instead of the outer ones.
        #[default]
        Inner = "inner",
        /// The outer and the inner packets.
        Both = "both",
    }
}

ringtap_base::choices! {
    /// What a UDP port carries.
    pub enum PortKind: "kind of tunnel over UDP" {
        /// CAPWAP data.
        Capwap = "capwap",
        /// Geneve.
        Geneve = "geneve",
        /// GRE.
        Gre = "gre",
        /// GTP, user plane.
        GtpU = "gtp-u",
        /// Generic UDP encapsulation.
        Gue = "gue",
        /// L2TP, versions 2 and 3.
        L2tp = "l2tp",
        /// LISP data.
        Lisp = "lisp",
        /// MPLS labels.
        Mpls = "mpls",
        /// No tunnel.
        None = "none",
        /// Teredo.
        Teredo = "teredo",
        /// VXLAN.
        Vxlan = "vxlan",
        /// VXLAN with a protocol field.
        VxlanGpe = "vxlan-gpe",
    }
}
