// The command `hearth-crash` tests that commits acknowledged by the embedded store survive power cuts,
// failing writes and syncs, and a full disk. It simulates these faults in many child processes. `make crash`
// runs it.
//
//   hearth-crash cuts N [--seed S] [--no-sync]    N power cuts; with --no-sync it expects and reports losses
//   hearth-crash each FROM TO [--seed S]          a power cut at each change of the disk, in a range
//   hearth-crash accounts N [--seed S] [--no-sync]    like cuts, with users, keys, service accounts and revocations
//   hearth-crash faults write|sync FROM TO        the n-th write or sync fails, for every n of a range
//   hearth-crash full                             a file system of 4 MiB fills up
//   hearth-crash client N [--seed S]              N kills and power cuts of clients of the Database SDK
//   hearth-crash firestore-client N [--seed S]    N kills and power cuts of clients of the Firestore SDK
//   hearth-crash write ...                        the child process of cuts, faults and full (Workload.swift)
//   hearth-crash write-accounts ...               the child process of accounts (AccountWorkload.swift)

import Glibc

@main
struct Command {
  static func main() async {
    var arguments = Array(CommandLine.arguments.dropFirst())
    let noSync = Command.take("--no-sync", from: &arguments)
    let seed = Command.option("--seed", from: &arguments).flatMap(UInt64.init) ?? 1
    do {
      switch arguments.first {
      case "cuts" where arguments.count == 2:
        try await finish(PowerCuts(count: Int(arguments[1]) ?? 0, seed: seed, syncs: !noSync).run())
      case "each" where arguments.count == 3:
        guard let from = Int(arguments[1]), let to = Int(arguments[2]), from <= to else { usage() }
        try await finish(PowerCuts(count: 2 * (to - from + 1), seed: seed, syncs: !noSync).runEach(from...to))
      case "accounts" where arguments.count == 2:
        let cuts = PowerCuts(subject: .accounts, count: Int(arguments[1]) ?? 0, seed: seed, syncs: !noSync)
        try await finish(cuts.run())
      case "faults" where arguments.count == 4:
        let kind = Fault(rawValue: arguments[1])
        guard let kind, let from = Int(arguments[2]), let to = Int(arguments[3]), from <= to else { usage() }
        try await finish(FailingCalls(kind: kind, numbers: from...to, seed: seed).run())
      case "full" where arguments.count == 1:
        try await finish(FullDisk(seed: seed).run())
      case "client" where arguments.count == 2:
        try finish(ClientCuts(product: .database, count: Int(arguments[1]) ?? 0, seed: seed).run())
      case "firestore-client" where arguments.count == 2:
        try finish(ClientCuts(product: .firestore, count: Int(arguments[1]) ?? 0, seed: seed).run())
      case "write":
        try await Workload(arguments: Array(arguments.dropFirst())).run()
        // The process ends without closing the store, like a killed process.
        _exit(0)
      case "write-accounts":
        try await AccountWorkload(arguments: Array(arguments.dropFirst())).run()
        _exit(0)
      default: usage()
      }
    } catch {
      print("hearth-crash: \(error)")
      exit(2)
    }
  }

  private static func finish(_ report: Report) {
    print(report.text)
    exit(report.passed ? 0 : 1)
  }

  private static func usage() -> Never {
    print(
      "usage: hearth-crash cuts|accounts N [--seed S] [--no-sync] | each FROM TO | client|firestore-client N [--seed S] | faults write|sync FROM TO | full"
    )
    exit(64)
  }

  private static func take(_ flag: String, from arguments: inout [String]) -> Bool {
    guard let index = arguments.firstIndex(of: flag) else { return false }
    arguments.remove(at: index)
    return true
  }

  private static func option(_ name: String, from arguments: inout [String]) -> String? {
    guard let index = arguments.firstIndex(of: name), index + 1 < arguments.count else { return nil }
    defer { arguments.removeSubrange(index...(index + 1)) }
    return arguments[index + 1]
  }
}

/// The result of a run: the printed lines and the exit status.
struct Report {
  var text: String
  var passed: Bool
}

/// The reason that a run could not be carried out.
struct CrashError: Error, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}
