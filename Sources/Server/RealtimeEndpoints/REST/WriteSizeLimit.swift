// Limits the size of a write by its estimated time. The estimate counts the values that the write adds and replaces,
// at a rate that small machines reach.

import JSON
import RealtimeEngine
import RealtimeModel

/// The classes of writes by their estimated time.
enum WriteSizeLimit: String, Sendable {
  case tiny, small, medium, large, unlimited

  /// Values per second of estimated time.
  static let valuesPerSecond = 100_000

  /// Maximum number of values that a write of the class may touch; nil for no limit.
  var values: Int? {
    switch self {
    case .tiny: Self.valuesPerSecond
    case .small: 10 * Self.valuesPerSecond
    case .medium: 30 * Self.valuesPerSecond
    case .large: 60 * Self.valuesPerSecond
    case .unlimited: nil
    }
  }
}

extension RESTRequest {
  /// Returns the class of the write: the requested one, otherwise the database's; nil without either.
  func sizeLimit(in database: RealtimeDatabase) async throws(RealtimeError) -> WriteSizeLimit? {
    if let writeSizeLimit { return writeSizeLimit }
    let setting = try await database.setting(.defaultWriteSizeLimit, as: .administrator)
    return setting.flatMap { (try? JSONValue(json: $0))?.string }.flatMap(WriteSizeLimit.init(rawValue:))
  }

  /// Rejects an update that touches more values than its class allows.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `write_too_big`, or an error of the update itself.
  func checkSize(of changes: [(Path, Node)], in database: RealtimeDatabase) async throws(RealtimeError) {
    // A priority is one value.
    guard let maximum = try await sizeLimit(in: database)?.values, !path.isPriority else { return }
    let count = try await database.estimate(path, changes, atMost: maximum + 1, as: caller)
    guard count <= maximum else { throw .writeTooBig }
  }
}
