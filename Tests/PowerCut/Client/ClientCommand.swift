// The command `hearth-crash-client` is the child of `hearth-crash client`: a program with an SDK and its cache on disk,
// which is never online. The environment variable XDG_DATA_HOME names the directory of the cache.
//
//   hearth-crash-client database|firestore write LOG COUNT      makes writes, and records which ones the app saw and
//                                                               which are durable
//   hearth-crash-client database|firestore read LOG             records the writes that the cache has

import Glibc

@main
struct ClientCommand {
  static func main() async {
    let arguments = Array(CommandLine.arguments.dropFirst())
    guard arguments.count >= 3, let log = ClientLogWriter(arguments[2]) else { exit(2) }
    let count = arguments.count == 4 ? Int(arguments[3]) ?? 0 : 0
    switch (arguments[0], arguments[1]) {
    case ("database", "write"): await ClientWorkload(log)?.write(count)
    case ("database", "read"): await ClientWorkload(log)?.read()
    case ("firestore", "write"): await FirestoreWorkload(log)?.write(count)
    case ("firestore", "read"): await FirestoreWorkload(log)?.read()
    default: exit(64)
    }
    // The process ends without closing the cache, like a killed process.
    _exit(0)
  }
}
