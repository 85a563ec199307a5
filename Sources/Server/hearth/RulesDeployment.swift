// The parts of `hearth rules` that reach a running server: deployment, history and rollback.

import ArgumentParser
import Foundation
import HearthServer
import SecurityRules

/// The product whose rules a command manages.
enum RulesProduct: String, ExpressibleByArgument, CaseIterable {
  case firestore
  case database
}

/// The options that name a server and a database.
struct RulesTarget: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The address of the product's port. (default: http://127.0.0.1:8080 for Cloud Firestore, http://127.0.0.1:9000 for the Realtime Database)",
      valueName: "url"))
  var server: String?

  @Option(
    help: ArgumentHelp(
      "The JSON file of a service account with the role administrator. Without it the server must be an emulator.",
      valueName: "file"))
  var credentials: String?

  @Option(
    help: ArgumentHelp(
      "The project. (default: that of the service account, or demo-project)", valueName: "id"))
  var project: String?

  @Option(
    help: ArgumentHelp(
      "The database. (default: (default) for Cloud Firestore, PROJECT-default-rtdb for the Realtime Database)",
      valueName: "id"))
  var database: String?

  /// The rules of the database of Cloud Firestore.
  func firestore() throws(HearthError) -> FirestoreRemoteRules {
    let client = try RulesClient(server: server ?? "http://127.0.0.1:8080", credentials: credentials)
    return FirestoreRemoteRules(client, project: project(client), database: database ?? "(default)")
  }

  /// The rules of the Realtime Database.
  func realtime() throws(HearthError) -> RealtimeRemoteRules {
    let client = try RulesClient(server: server ?? "http://127.0.0.1:9000", credentials: credentials)
    return RealtimeRemoteRules(client, namespace: database ?? "\(project(client))-default-rtdb")
  }

  /// The logged denials of a product. The port of Cloud Firestore serves the denials of both products.
  func denials(of product: RulesProduct) throws(HearthError) -> DenialReplay {
    let client = try RulesClient(server: server ?? "http://127.0.0.1:8080", credentials: credentials)
    let project = project(client)
    return switch product {
    case .firestore: DenialReplay(client, project: project, database: database ?? "(default)")
    case .database: DenialReplay(client, project: project, namespace: database ?? "\(project)-default-rtdb")
    }
  }

  /// The rules of a product.
  func rules(of product: RulesProduct) throws(HearthError) -> any RemoteRules {
    switch product {
    case .firestore: try firestore()
    case .database: try realtime()
    }
  }

  private func project(_ client: RulesClient) -> String { project ?? client.project ?? "demo-project" }
}

extension RulesCommand {
  struct Deploy: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Store a rules file as a ruleset of a running server, and put it in force.")

    @Argument(help: "The rules file.")
    var file: String

    @OptionGroup var target: RulesTarget

    @Flag(help: "Only check the rules on the server.")
    var dryRun = false

    @Flag(
      help: """
        Realtime Database: put nothing in force. The server also decides requests by these rules, and logs those with \
        another verdict.
        """)
    var canary = false

    func validate() throws {
      if dryRun, canary { throw ValidationError("Choose one of --dry-run and --canary.") }
    }

    func run() async throws {
      try await RulesCommand.report {
        let source = try RulesCommand.read(file)
        let product: RulesProduct = TestedRules.isRealtime(source) ? .database : .firestore
        if canary {
          guard product == .database else {
            throw HearthError("Only rules of the Realtime Database can be a canary.")
          }
          print("ruleset \(try await target.realtime().deployCanary(source, file: file)) is the canary")
          return
        }
        let rules = try target.rules(of: product)
        for warning in try await rules.check(source, file: file) {
          FileHandle.standardError.write(Data("\(warning)\n".utf8))
        }
        if dryRun { return print("the rules are valid") }
        print("ruleset \(try await rules.deploy(source, file: file)) is in force")
      }
    }
  }

  struct Replay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Decide the requests that a running server has denied by a draft, and list those it allows.",
      discussion: "--server is the address of Cloud Firestore's port for both products.")

    @Argument(help: "The draft rules file.")
    var file: String

    @OptionGroup var target: RulesTarget

    func run() async throws {
      try await RulesCommand.report {
        let source = try RulesCommand.read(file)
        let product: RulesProduct = TestedRules.isRealtime(source) ? .database : .firestore
        let results = try await target.denials(of: product).run(source, file: file)
        for result in results where result.verdict != .deny {
          print("\(result.verdict.rawValue): \(result.request)")
        }
        let (allowed, unknown) = (
          results.filter { $0.verdict == .allow }.count, results.filter { $0.verdict == .unknown }.count
        )
        print(
          "\(results.count) denials, \(allowed) allowed by the draft, \(unknown) without the data to decide")
        if allowed > 0 { throw RulesCommand.findings }
      }
    }
  }

  struct History: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the releases of a running server, newest first.",
      discussion: """
        For the Realtime Database the list has the stored rulesets and the time at which each was stored.
        """)

    @Option(help: "The product: firestore or database.")
    var product = RulesProduct.firestore

    @OptionGroup var target: RulesTarget

    func run() async throws {
      try await RulesCommand.report {
        for entry in try await target.rules(of: product).history() {
          print(([entry.time, entry.ruleset] + entry.remarks).joined(separator: "\t"))
        }
      }
    }
  }

  struct Rollback: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Put an earlier ruleset in force again.")

    @Argument(help: "The ruleset. (default: the one before that in force, as the history lists them)")
    var ruleset: String?

    @Option(help: "The product: firestore or database.")
    var product = RulesProduct.firestore

    @Flag(help: "Realtime Database: only end the comparison with the canary.")
    var canary = false

    @OptionGroup var target: RulesTarget

    func run() async throws {
      try await RulesCommand.report {
        if canary {
          guard product == .database else {
            throw HearthError("Only the Realtime Database has a canary: add --product database.")
          }
          try await target.realtime().removeCanary()
          return print("there is no canary")
        }
        let rules = try target.rules(of: product)
        guard let ruleset else { return print("ruleset \(try await rules.rollBack()) is in force") }
        try await rules.release(ruleset)
        print("ruleset \(ruleset) is in force")
      }
    }
  }
}
