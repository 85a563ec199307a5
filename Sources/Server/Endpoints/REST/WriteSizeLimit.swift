// How large a write may be that says, or whose database says, how long it may take. The time is estimated from the values
// that the write brings and those that it replaces, at a rate that small machines reach.

import JSON
import RealtimeEngine
import RealtimeModel

/// The classes of writes by the time that they are estimated to take.
enum WriteSizeLimit: String, Sendable {
  case tiny, small, medium, large, unlimited

  /// How many values are taken for one second's work.
  static let valuesPerSecond = 100_000

  /// The most values that a write of the class may touch; nil for any number.
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
  /// The class of the write: its own, else the database's; nil if neither says anything.
  func sizeLimit(in database: RealtimeDatabase) async throws(RealtimeError) -> WriteSizeLimit? {
    if let writeSizeLimit { return writeSizeLimit }
    let setting = try await database.setting(.defaultWriteSizeLimit, as: .administrator)
    return setting.flatMap { (try? JSONValue(json: $0))?.string }.flatMap(WriteSizeLimit.init(rawValue:))
  }

  /// Refuses an update that touches more than its class, or the database's, allows.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `write_too_big`, or what the update itself would throw.
  func checkSize(of changes: [(Path, Node)], in database: RealtimeDatabase) async throws(RealtimeError) {
    // A priority is one value.
    guard let most = try await sizeLimit(in: database)?.values, !path.isPriority else { return }
    let count = try await database.estimate(path, changes, atMost: most + 1, as: caller)
    guard count <= most else { throw .writeTooBig }
  }
}
