//! An HTTP/1 server with limits on headers, bodies, connections and time. The
//! metrics of the agent and the studio are served by it.
