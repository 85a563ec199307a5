// A write size limit rejects writes that would take too long. The time is estimated as the number of values
// that the write adds and replaces, divided by a rate that small machines reach.

import Access
import JSON
import RealtimeEngine
import RealtimeModel

/// The classes of write sizes that Firebase defines by the estimated time of a write.
enum WriteSizeLimit: String, Sendable {
  case tiny, small, medium, large, unlimited

  /// The number of values per second that the estimate assumes.
  static let valuesPerSecond = 100_000

  /// Maximum number of values that a write of the class may touch; nil for no limit.
  var maximumValues: Int? {
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
  /// Returns the class that limits the write: the class in the request, else the class in the database's settings,
  /// else nil.
  func sizeLimit(in database: RealtimeDatabase) async throws(RealtimeError) -> WriteSizeLimit? {
    if let writeSizeLimit { return writeSizeLimit }
    let setting = try await database.setting(.defaultWriteSizeLimit, as: .administrator)
    return setting.flatMap { (try? JSONValue(json: $0))?.string }.flatMap(WriteSizeLimit.init(rawValue:))
  }

  /// Rejects an update that touches more values than its class allows.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `write_too_big`, or an error of the update itself.
  func checkSize(of changes: [(Path, Node)], in database: RealtimeDatabase) async throws(RealtimeError) {
    // A write to a priority changes one value only, so no class rejects it.
    guard let maximum = try await sizeLimit(in: database)?.maximumValues, !path.isPriority else { return }
    let count = try await database.estimate(
      path, changes, isConditional: condition != .none, atMost: maximum + 1, as: caller)
    guard count <= maximum else { throw .writeTooBig }
  }
}
