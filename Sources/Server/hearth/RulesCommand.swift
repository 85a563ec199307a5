// The command `hearth rules` checks, tests and compares rules files, and deploys them to a running server.

import ArgumentParser
import Foundation
import HearthServer
import SecurityRules

struct RulesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rules", abstract: "Check, test, compare and deploy security rules.",
    discussion: """
      Rules files of both products are accepted: the first token of a file shows its product. docs/guides/rules.md shows \
      each command.

      The exit code is 0 for success, 2 if a test fails or there are findings or differences, and 1 for an error.
      """,
    subcommands: [Test.self, Lint.self, Diff.self, Replay.self, Deploy.self, History.self, Rollback.self])

  /// The exit code if a case fails, or if there are findings of the linter or differences between rules.
  static let findings = ExitCode(2)

  /// Runs a command and reports its error.
  static func report(_ work: () async throws -> Void) async throws {
    do { try await work() } catch let error as HearthError {
      FileHandle.standardError.write(Data("hearth: \(error)\n".utf8))
      throw ExitCode.failure
    }
  }

  /// Reads a file.
  static func read(_ path: String) throws(HearthError) -> [UInt8] {
    do {
      if let bytes = try ConfigurationFile.read(path) { return bytes }
    } catch { throw HearthError("The file \(path) cannot be read: \(error)") }
    throw HearthError("The file \(path) does not exist.")
  }

  /// Reads and compiles a rules file.
  static func compile(_ path: String) throws(HearthError) -> TestedRules {
    let source = try read(path)
    do throws(RulesFileError) { return try TestedRules(compiling: source) } catch {
      throw HearthError(error.problems.map { "\(path):\($0)" }.joined(separator: "\n"))
    }
  }

  /// Reads a file of cases: requests with the verdicts that the rules should give.
  static func cases(_ path: String) throws(HearthError) -> RuleCaseFile {
    let bytes = try read(path)
    do throws(RuleCaseError) { return try RuleCaseFile(bytes) } catch {
      throw HearthError("\(path): \(error)")
    }
  }
}

extension RulesCommand {
  struct Test: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Decide the cases of a JSON file, and compare the verdicts with the expected ones.")

    @Argument(help: "The file of cases.")
    var file: String

    @Option(
      help: ArgumentHelp(
        "The rules file. (default: the one that the file of cases names, relative to it)", valueName: "file"))
    var rules: String?

    @Option(
      help: ArgumentHelp("Also write the results to this file, in the form of JUnit.", valueName: "file"))
    var junit: String?

    func run() async throws {
      try await RulesCommand.report {
        let cases = try RulesCommand.cases(file)
        guard let path = rules ?? cases.rules.map({ RulesCommand.path($0, relativeTo: file) }) else {
          throw HearthError("\(file) names no rules file. Name one with --rules.")
        }
        let compiled = try RulesCommand.compile(path)
        let report: RuleTestReport
        do throws(RuleCaseError) { report = try RuleTestReport(file, cases, rules: compiled) } catch {
          throw HearthError("\(file): \(error)")
        }
        if let junit {
          do { try Data(report.junit.utf8).write(to: URL(fileURLWithPath: junit)) } catch {
            throw HearthError("\(junit) cannot be written: \(error.localizedDescription)")
          }
        }
        for result in report.results {
          print(result.hasPassed ? "ok: \(result.name)" : "failed: \(result.name): \(result.failure)")
        }
        print("\(report.results.count) cases, \(report.failures.count) failed")
        if !report.failures.isEmpty { throw RulesCommand.findings }
      }
    }
  }

  /// A path as a file names it: relative to the directory of that file.
  fileprivate static func path(_ path: String, relativeTo file: String) -> String {
    URL(fileURLWithPath: path, relativeTo: URL(fileURLWithPath: file).deletingLastPathComponent()).path
  }

  struct Lint: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Find rules that are open, uneven, unused or without effect.")

    @Argument(help: "The rules file.")
    var file: String

    func run() async throws {
      try await RulesCommand.report {
        let findings = try RulesCommand.compile(file).lint()
        for finding in findings { print("\(file):\(finding.report)") }
        if !findings.isEmpty { throw RulesCommand.findings }
      }
    }
  }

  struct Diff: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Decide requests by two rules files, and list those with different verdicts.")

    @Argument(help: "The old rules file.")
    var old: String

    @Argument(help: "The new rules file.")
    var new: String

    @Option(
      help: ArgumentHelp("The requests: a file of cases as for 'hearth rules test'.", valueName: "file"))
    var requests: String

    func run() async throws {
      try await RulesCommand.report {
        let (before, after) = (try RulesCommand.compile(old), try RulesCommand.compile(new))
        let cases = try RulesCommand.cases(requests).cases
        let differences: [RuleDifference]
        do throws(RuleCaseError) {
          differences = try RuleDifference.find(in: cases, old: before, new: after)
        } catch { throw HearthError("\(requests): \(error)") }
        for difference in differences {
          let reason = (difference.new.reason ?? difference.old.reason).map { ": \($0)" } ?? ""
          print("\(difference.name): \(difference.old.verdict) -> \(difference.new.verdict)\(reason)")
        }
        print("\(cases.count) requests, \(differences.count) with another verdict")
        if !differences.isEmpty { throw RulesCommand.findings }
      }
    }
  }
}
