// The data check reads a data directory that no server has open. It verifies that Firestore's rows are
// consistent with each other, and that the trees of the Realtime Database are readable.

import Access
import EmbeddedStore
public import FirestoreEngine
import FirestoreModel
import Foundation
import NIOConcurrencyHelpers
import OrderedStore
public import RealtimeEngine

/// Checks data directories.
public enum DataCheck {
  /// The result of one Firestore database.
  public struct Finding: Sendable {
    /// `projects/P/databases/D`.
    public var database: String
    /// The result of the check.
    public var report: ConsistencyReport
  }

  /// The results of a directory.
  public struct Findings: Sendable {
    /// The results of each Firestore database.
    public var firestore: [Finding]
    /// The results of each Realtime Database namespace.
    public var realtime: [TreeReport]
    /// The store's reports while it opened, such as an incomplete end of the write-ahead log. If a log has lost its
    /// end, this report is the only trace of it. A power cut leaves the same report.
    public var reports: [String] = []
    /// Whether no problem was found.
    public var areConsistent: Bool {
      firestore.allSatisfy(\.report.isConsistent) && realtime.allSatisfy(\.isConsistent)
    }
  }

  /// Checks every database in a directory. Opening the store may clean up the directory like a server start;
  /// the check changes nothing else.
  /// - Throws: ``HearthError`` if there is no such directory, a server has it open, or it cannot be read.
  public static func run(directory: String) async throws(HearthError) -> Findings {
    guard FileManager.default.fileExists(atPath: directory + "/CURRENT") else {
      throw HearthError("\(directory) is no data directory of Hearth.")
    }
    do {
      let reports = NIOLockedValueBox<[String]>([])
      let options = StoreOptions(report: { text in reports.withLockedValue { $0.append(text) } })
      let store = try await EmbeddedStore.open(directory: directory, EmbeddedOptions(store: options))
      do {
        var findings = try await run(store)
        findings.reports = reports.withLockedValue { $0 }
        try await store.close()
        return findings
      } catch {
        try? await store.close()
        throw error
      }
    } catch let error as StoreError where error.code == .locked {
      throw HearthError("\(error.message). Stop the server before its data is checked.")
    } catch {
      throw HearthError("\(directory) cannot be checked: \(error)")
    }
  }

  private static func run(_ store: EmbeddedStore) async throws -> Findings {
    let engine = FirestoreEngine(
      store: store, policy: LockedPolicy(), options: .init(createsDatabases: false))
    var findings: [Finding] = []
    for name in try await engine.databaseNames() {
      findings.append(
        Finding(database: name.description, report: try await ConsistencyCheck.run(name, in: store)))
    }
    await engine.shutDown()
    return Findings(firestore: findings, realtime: try await TreeCheck.run(store))
  }
}
