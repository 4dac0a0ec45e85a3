//! The choice between a tunnel's outer and inner packets.

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
