// The command `hearth-crash-client` is the child of `hearth-crash client`: a program with the Realtime Database SDK and
// its cache on disk, which is never online. XDG_DATA_HOME names the directory of the cache.
//
//   hearth-crash-client write NOTES COUNT    makes writes, and records which ones the app saw and which are durable
//   hearth-crash-client read NOTES           records the writes that the cache has

import Glibc

@main
struct ClientCommand {
  static func main() async {
    let arguments = Array(CommandLine.arguments.dropFirst())
    guard arguments.count >= 2, let notes = Notes(arguments[1]), let client = ClientWorkload(notes) else {
      exit(2)
    }
    switch arguments.first {
    case "write" where arguments.count == 3: await client.write(Int(arguments[2]) ?? 0)
    case "read" where arguments.count == 2: await client.read()
    default: exit(64)
    }
    // The process ends without closing the cache, like a killed process.
    _exit(0)
  }
}
