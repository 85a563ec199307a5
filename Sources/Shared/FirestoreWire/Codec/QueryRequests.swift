// Decodes requests with queries, without the generated messages, which treat some different field names as equal (see
// QueryDecoding).

public import FirestoreModel

/// A `RunQueryRequest`.
public struct RunQueryRequest: Hashable, Sendable {
  /// The parent's name as it was sent.
  public var parent = ""
  /// The query; nil if none was sent.
  public var query: StructuredQuery?
  /// The state to read.
  public var consistency = ReadConsistency.latest
  /// The requested explanation.
  public var explain = ExplainMode.none

  /// Decodes a request, without keeping a reference to its bytes.
  ///
  /// - Throws: INVALID_ARGUMENT if the request is malformed.
  public init(decoding bytes: UnsafeRawBufferPointer) throws(FirestoreError) {
    var reader = ProtobufReader(bytes)
    while let tag = try reader.nextTag() {
      switch tag.field {
      case 1:
        parent = try reader.string(tag)
      case 2:
        var nested = try reader.message(tag)
        query = try nested.structuredQuery()
      case 5:
        consistency = .transaction(try reader.bytes(tag))
      case 6:
        var nested = try reader.message(tag)
        consistency = .newTransaction(try nested.transactionOptions(or: .readOnly()))
      case 7:
        var nested = try reader.message(tag)
        consistency = .readTime(try nested.timestamp())
      case 10:
        var nested = try reader.message(tag)
        explain = try nested.explainOptions()
      default: try reader.skip(tag)
      }
    }
  }
}

/// A `ListenRequest`: one message of a Listen stream.
public struct ListenStreamRequest: Sendable {
  /// A change of the stream's targets.
  public enum Change: Sendable {
    /// Adds a target.
    case add(Target)
    /// Removes the target with this id.
    case remove(Int32)
  }

  /// A `Target`.
  public struct Target: Sendable {
    /// The target id; 0 if the server is to choose it.
    public var id: Int32 = 0
    /// The query or documents. If they are invalid, the result is an error, which affects only this target.
    public var selection: Result<Selection, FirestoreError> = .failure(
      .unimplemented("The target must be a query or documents; other targets are not implemented."))
    /// The resume token; nil if none was sent.
    public var resumeToken: [UInt8]?
    /// The time to resume at; nil if none was sent.
    public var readTime: Timestamp?
    /// Whether to remove the target once it is current.
    public var once = false
    /// The number of documents that the client had at its resume point.
    public var expectedCount: Int?
  }

  /// The selection of a target.
  public enum Selection: Hashable, Sendable {
    /// The results of a query.
    case query(Query)
    /// Documents by name.
    case documents([DocumentName])
  }

  /// The database's name as it was sent; empty if none was sent.
  public var database = ""
  /// The change; nil if none was sent.
  public var change: Change?

  /// Decodes a request, without keeping a reference to its bytes.
  ///
  /// - Throws: INVALID_ARGUMENT if the request is malformed.
  public init(decoding bytes: UnsafeRawBufferPointer) throws(FirestoreError) {
    var reader = ProtobufReader(bytes)
    while let tag = try reader.nextTag() {
      switch tag.field {
      case 1:
        database = try reader.string(tag)
      case 2:
        var nested = try reader.message(tag)
        change = .add(try nested.target())
      case 3:
        change = .remove(try reader.int32(tag))
      default: try reader.skip(tag)
      }
    }
  }
}

extension ProtobufReader {
  /// Reads an `ExplainOptions` message.
  mutating func explainOptions() throws(FirestoreError) -> ExplainMode {
    var mode = ExplainMode.plan
    while let tag = try nextTag() {
      switch tag.field {
      case 1: mode = try varint(tag) != 0 ? .analyze : .plan
      default: try skip(tag)
      }
    }
    return mode
  }

  /// Reads a `TransactionOptions` message. `fallback` applies if it names no mode.
  mutating func transactionOptions(or fallback: TransactionOptions) throws(FirestoreError)
    -> TransactionOptions
  {
    var options = fallback
    while let tag = try nextTag() {
      switch tag.field {
      case 2:
        var nested = try message(tag)
        options = .readOnly(readTime: try nested.readOnlyTime())
      case 3:
        var nested = try message(tag)
        options = try nested.readWrite()
      default: try skip(tag)
      }
    }
    return options
  }

  private mutating func readOnlyTime() throws(FirestoreError) -> Timestamp? {
    var time: Timestamp?
    while let tag = try nextTag() {
      guard tag.field == 2 else {
        try skip(tag)
        continue
      }
      var nested = try message(tag)
      time = try nested.timestamp()
    }
    return time
  }

  private mutating func readWrite() throws(FirestoreError) -> TransactionOptions {
    var retried: [UInt8] = []
    var mode = TransactionOptions.ConcurrencyMode.unspecified
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        retried = try bytes(tag)
      case 2:
        switch try varint(tag) {
        case 1: mode = .optimistic
        case 2: mode = .pessimistic
        default: mode = .unspecified
        }
      default: try skip(tag)
      }
    }
    return .readWrite(retrying: retried.isEmpty ? nil : retried, concurrency: mode)
  }

  /// Reads a `Target` message. An invalid selection does not fail the request.
  fileprivate mutating func target() throws(FirestoreError) -> ListenStreamRequest.Target {
    var target = ListenStreamRequest.Target()
    while let tag = try nextTag() {
      switch tag.field {
      case 2:
        var nested = try message(tag)
        do throws(FirestoreError) {
          target.selection = .success(try nested.queryTarget())
        } catch { target.selection = .failure(error) }
      case 3:
        var nested = try message(tag)
        do throws(FirestoreError) {
          target.selection = .success(try nested.documentsTarget())
        } catch { target.selection = .failure(error) }
      case 4:
        target.resumeToken = try bytes(tag)
        target.readTime = nil
      case 5:
        target.id = try int32(tag)
      case 6:
        target.once = try varint(tag) != 0
      case 11:
        var nested = try message(tag)
        target.readTime = try nested.timestamp()
        target.resumeToken = nil
      case 12:
        var nested = try message(tag)
        target.expectedCount = Int(try nested.int32Wrapper())
      default: try skip(tag)
      }
    }
    return target
  }

  private mutating func queryTarget() throws(FirestoreError) -> ListenStreamRequest.Selection {
    var parent = ""
    var query: StructuredQuery?
    while let tag = try nextTag() {
      switch tag.field {
      case 1:
        parent = try string(tag)
      case 2:
        var nested = try message(tag)
        query = try nested.structuredQuery()
      default: try skip(tag)
      }
    }
    guard let query else { throw .invalidArgument("only structured queries are supported") }
    return .query(Query(parent: try ParentName(parsing: parent), query))
  }

  private mutating func documentsTarget() throws(FirestoreError) -> ListenStreamRequest.Selection {
    var names: [DocumentName] = []
    while let tag = try nextTag() {
      guard tag.field == 2 else {
        try skip(tag)
        continue
      }
      names.append(try DocumentName(parsing: try string(tag)))
    }
    return .documents(names)
  }
}
