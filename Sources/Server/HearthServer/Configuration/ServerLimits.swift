// The server limits are those limits of the two Firebase products that an operator may raise in a limits
// file. Each has a name, a ceiling, and the reason for the ceiling.
//
// Invariant: no limit is below the hosted product's limit, so clients can rely on the documented limits. No
// limit is above its ceiling, because tests cover values only up to there.

public import FirestoreEngine
import FirestoreModel
public import RealtimeModel

/// The limits of both products.
public struct ServerLimits: Sendable, Equatable {
  /// The limits of Cloud Firestore.
  public var firestore = EngineLimits.standard
  /// The limits of the Realtime Database.
  public var realtime = RealtimeLimits.standard

  /// Makes the limits of the hosted products.
  public init() {}

  /// A limit that may be raised.
  public struct Adjustable: Sendable {
    /// The product: `firestore` or `realtime`.
    public let product: String
    /// The name in that product's section of a limits file.
    public let name: String
    /// The limit of the hosted product.
    public let standard: Int
    /// The maximum value.
    public let ceiling: Int
    /// The reason for the ceiling, as the clause that follows "since" in error messages.
    public let reason: String
    let path: any WritableKeyPath<ServerLimits, Int> & Sendable

    init(
      _ product: String, _ name: String, _ path: any WritableKeyPath<ServerLimits, Int> & Sendable,
      _ ceiling: Int,
      _ reason: String
    ) {
      self.product = product
      self.name = name
      self.path = path
      self.ceiling = ceiling
      self.reason = reason
      standard = ServerLimits()[keyPath: path]
    }

    /// Product and name: `firestore.documentBytes`.
    public var fullName: String { "\(product).\(name)" }
  }

  /// Every limit that may be raised.
  public static let adjustable: [Adjustable] = [
    // Documents.
    Adjustable(
      "firestore", "documentBytes", \.firestore.data.documentBytes, 10 << 20,
      "a document is one row of at most 16 MiB, and small values take more there than they count"),
    Adjustable(
      "firestore", "valueBytes", \.firestore.data.valueBytes, (10 << 20) - 89,
      "a value is part of one document"),
    Adjustable(
      "firestore", "valueDepth", \.firestore.data.valueDepth, Limits.maximumValueDepth,
      "clients read at most 100 nested protobuf messages, and a level takes three"),
    Adjustable(
      "firestore", "vectorDimensions", \.firestore.data.vectorDimensions, 65_536,
      "a search compares all of them in every document"),
    Adjustable(
      "firestore", "transformsPerDocument", \.firestore.data.transformsPerDocument, 5_000,
      "all writes of a database wait while they are applied"),
    Adjustable(
      "firestore", "requestBytes", \.firestore.maximumRequestBytes, 16 << 20,
      "a gRPC message has at most 17 MiB, on both sides"),
    // Queries.
    Adjustable(
      "firestore", "disjunctions", \.firestore.data.disjunctions, 500,
      "each is a separate search"),
    Adjustable(
      "firestore", "notInValues", \.firestore.data.notInValues, 500,
      "every scanned document is compared with all of them"),
    Adjustable(
      "firestore", "filtersAndOrders", \.firestore.data.filtersAndOrders, 500,
      "each is evaluated on every scanned document"),
    Adjustable(
      "firestore", "inequalityFields", \.firestore.data.inequalityFields, 100,
      "each orders the result, and an index has at most 100 fields"),
    Adjustable(
      "firestore", "aggregations", \.firestore.data.aggregations, 100,
      "each is computed from every matching document"),
    Adjustable(
      "firestore", "nearestNeighbours", \.firestore.data.nearestNeighbours, 10_000,
      "they are kept in memory during the search"),
    // Indexes.
    Adjustable(
      "firestore", "indexEntries", \.firestore.maximumIndexEntries, 200_000,
      "they are written with their document, and a commit has at most 64 MiB"),
    Adjustable(
      "firestore", "indexEntryBytes", \.firestore.maximumIndexEntryBytes, 16_384,
      "no combination of names and value needs more"),
    Adjustable(
      "firestore", "indexEntriesBytes", \.firestore.maximumIndexEntriesBytes, 16 << 20,
      "they are written with their document, and a commit has at most 64 MiB"),
    Adjustable(
      "firestore", "compositeIndexes", \.firestore.maximumCompositeIndexes, 10_000,
      "each write reads those of its collection"),
    Adjustable(
      "firestore", "fieldOverrides", \.firestore.maximumFieldOverrides, 10_000,
      "each write reads those of its collection"),
    // Time.
    Adjustable(
      "firestore", "historySeconds", \.firestore.historySeconds, EngineLimits.maximumHistorySeconds,
      "overwritten rows stay on disk that long"),
    Adjustable(
      "firestore", "resumeSeconds", \.firestore.maximumResumeTokenAgeSeconds,
      EngineLimits.maximumHistorySeconds,
      "history goes back no further"),
    Adjustable(
      "firestore", "transactionIdleSeconds", \.firestore.transactionIdleTimeoutSeconds, 3_600,
      "its locks delay other transactions, and it reads history"),
    Adjustable(
      "firestore", "transactionSeconds", \.firestore.transactionTimeoutSeconds, 3_600,
      "its locks delay other transactions, and it reads history"),
    // Open objects.
    Adjustable(
      "firestore", "openTransactions", \.firestore.maximumOpenTransactions, 100_000,
      "each is kept in memory, and all are scanned when one expires"),
    Adjustable(
      "firestore", "streamTargets", \.firestore.maximumStreamTargets, 100_000,
      "every change that a stream receives is compared with all its targets"),
    // The Realtime Database.
    Adjustable(
      "realtime", "depth", \.realtime.depth, 100,
      "JSON is read to 128 levels, those of the message around it included"),
    Adjustable(
      "realtime", "keyBytes", \.realtime.keyBytes, 4_096,
      "all keys of a path have \(RealtimeLimits.pathBytes) bytes together"),
    Adjustable(
      "realtime", "stringBytes", \.realtime.stringBytes, (16 << 20) - 1_024,
      "a string is one row of at most 16 MiB"),
    Adjustable(
      "realtime", "socketWriteBytes", \.realtime.socketWriteBytes, 128 << 20,
      "a message is kept in memory until it is complete, and may be twice as long"),
    Adjustable(
      "realtime", "restWriteBytes", \.realtime.restWriteBytes, 1 << 30,
      "it is kept in memory until it is written; writeSizeLimit=unlimited accepts more, in chunks"),
    Adjustable(
      "realtime", "responseBytes", \.realtime.responseBytes, 1 << 30,
      "it is kept in memory until it is sent; format=export returns more, in chunks"),
    Adjustable(
      "realtime", "readSeconds", \.realtime.readSeconds, 24 * 3_600,
      "rows overwritten meanwhile stay on disk that long"),
    Adjustable(
      "realtime", "listensPerConnection", \.realtime.listensPerConnection, 100_000,
      "one connection must leave memory for others"),
    Adjustable(
      "realtime", "ordersPerLocation", \.realtime.ordersPerLocation, 10_000,
      "each keeps a sorted list of the location's children in memory, which every write to them updates"),
    Adjustable(
      "realtime", "onDisconnectsPerConnection", \.realtime.onDisconnectsPerConnection, 100_000,
      "they are executed in one commit of at most 64 MiB"),
    Adjustable(
      "realtime", "queuedOutputBytes", \.realtime.queuedOutputBytes, 1 << 30,
      "one connection must leave memory for others"),
  ]

  /// Sets a limit.
  /// - Throws: ``HearthError`` with the problem. The message is the end of a sentence that begins with the
  ///   limit's name.
  mutating func set(_ limit: Adjustable, to value: Int) throws(HearthError) {
    guard value >= limit.standard else {
      throw HearthError(
        "is \(value), below the product's own limit: it may be \(limit.standard) to \(limit.ceiling)")
    }
    guard value <= limit.ceiling else {
      throw HearthError("is \(value): it may be \(limit.standard) to \(limit.ceiling), since \(limit.reason)")
    }
    self[keyPath: limit.path] = value
  }

  /// Checks all limits for their bounds, and for contradictions between them.
  func validate() throws(HearthError) {
    for limit in Self.adjustable {
      var limits = ServerLimits()
      do throws(HearthError) { try limits.set(limit, to: self[keyPath: limit.path]) } catch {
        throw HearthError("The limit \(limit.fullName) \(error).")
      }
    }
    guard firestore.maximumResumeTokenAgeSeconds <= firestore.historySeconds else {
      throw HearthError(
        "The limit firestore.resumeSeconds is \(firestore.maximumResumeTokenAgeSeconds), and firestore.historySeconds "
          + "\(firestore.historySeconds): no token is good for longer than history is kept. Raise historySeconds, too."
      )
    }
  }

  /// The raised limits, as `name=value`.
  var raised: [String] {
    Self.adjustable.filter { self[keyPath: $0.path] != $0.standard }.map {
      "\($0.fullName)=\(self[keyPath: $0.path])"
    }
  }
}
