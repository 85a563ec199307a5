// The command `hearth check` reads a data directory that no server has open, and reports whether it is
// consistent.

import ArgumentParser
import FirestoreEngine
import Foundation
import HearthServer
import RealtimeEngine

struct Check: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract:
      "Check that documents and index entries agree, and that Realtime Database trees are readable.",
    discussion: """
      The server must be stopped. The exit code is 0 if all data is consistent, 2 if not, and 1 if the directory \
      cannot be checked.
      """)

  @Option(help: ArgumentHelp("The data directory.", valueName: "dir"))
  var data: String

  func run() async throws {
    let findings: DataCheck.Findings
    do {
      findings = try await DataCheck.run(directory: data)
    } catch {
      FileHandle.standardError.write(Data("hearth: \(error)\n".utf8))
      throw ExitCode.failure
    }
    if findings.reports.isEmpty { print("the write-ahead log ends with a complete record") }
    for report in findings.reports { print("note: \(report)") }
    for finding in findings.firestore {
      let report = finding.report
      print(
        "\(finding.database): \(report.documents) documents, \(report.automaticEntries) automatic and "
          + "\(report.compositeEntries) composite index entries, \(report.problemCount) problems")
      for problem in report.problems { print("  \(problem.fault.rawValue): \(problem.location)") }
      let unlistedCount = report.problemCount - report.problems.count
      if unlistedCount > 0 { print("  and \(unlistedCount) more") }
    }
    for report in findings.realtime {
      print("Realtime Database \(report.namespace): \(report.leaves) values, \(report.problemCount) problems")
      for problem in report.problems { print("  \(problem)") }
      let unlistedCount = report.problemCount - report.problems.count
      if unlistedCount > 0 { print("  and \(unlistedCount) more") }
    }
    guard findings.areConsistent else { throw ExitCode(2) }
    print("consistent")
  }
}
