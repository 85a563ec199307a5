// Converts writes and their parts between the generated messages and the model.
//
// Invariant: both directions keep the presence of a mask and the order of transforms.

public import FirestoreModel
public import FirestoreProtobuf
import SwiftProtobuf

extension [FieldPath] {
  /// The paths of a mask.
  public init(_ message: Google_Firestore_V1_DocumentMask) throws(FirestoreError) {
    self.init()
    for path in message.fieldPaths { append(try FieldPath(parsing: path)) }
  }
}

extension FieldMask {
  /// The field mask of a read.
  public init(_ message: Google_Firestore_V1_DocumentMask) throws(FirestoreError) {
    var mask = MaskPaths(for: .read)
    for path in message.fieldPaths { mask.append(try FieldPath(parsing: path)) }
    self.init(mask.paths)
  }
}

extension Google_Firestore_V1_DocumentMask {
  /// The message for a mask.
  public init(_ paths: [FieldPath]) {
    self.init()
    fieldPaths = paths.map(\.description)
  }
}

extension Precondition {
  /// The condition in a message; nil if it sets none.
  public init?(_ message: Google_Firestore_V1_Precondition) {
    switch message.conditionType {
    case .exists(let exists): self = .exists(exists)
    case .updateTime(let time): self = .updateTime(Timestamp(time))
    case nil: return nil
    }
  }
}

extension Google_Firestore_V1_Precondition {
  /// The message for a condition.
  public init(_ precondition: Precondition) {
    self.init()
    switch precondition {
    case .exists(let value): exists = value
    case .updateTime(let time): updateTime = Google_Protobuf_Timestamp(time)
    }
  }
}

extension FieldTransform {
  /// The transform in a message.
  ///
  /// - Throws: INVALID_ARGUMENT if it has no type.
  public init(_ message: Google_Firestore_V1_DocumentTransform.FieldTransform) throws(FirestoreError) {
    let operation: Operation
    switch message.transformType {
    case .setToServerValue(.requestTime): operation = .serverTimestamp
    case .setToServerValue: throw .invalidArgument("Unknown server value in a field transform.")
    case .increment(let operand): operation = .increment(try Value(operand))
    case .maximum(let operand): operation = .maximum(try Value(operand))
    case .minimum(let operand): operation = .minimum(try Value(operand))
    case .appendMissingElements(let array): operation = .appendMissing(try [Value](array))
    case .removeAllFromArray(let array): operation = .removeAll(try [Value](array))
    case nil: throw .invalidArgument("A field transform must name its type.")
    }
    self.init(try FieldPath(parsing: message.fieldPath), operation)
  }
}

extension Google_Firestore_V1_DocumentTransform.FieldTransform {
  /// The message for a transform.
  public init(_ transform: FieldTransform) {
    self.init()
    fieldPath = transform.field.description
    switch transform.operation {
    case .serverTimestamp: setToServerValue = .requestTime
    case .increment(let operand): increment = Google_Firestore_V1_Value(operand)
    case .maximum(let operand): maximum = Google_Firestore_V1_Value(operand)
    case .minimum(let operand): minimum = Google_Firestore_V1_Value(operand)
    case .appendMissing(let elements): appendMissingElements = Google_Firestore_V1_ArrayValue(elements)
    case .removeAll(let elements): removeAllFromArray = Google_Firestore_V1_ArrayValue(elements)
    }
  }
}

extension Write {
  /// The write in a message.
  ///
  /// - Throws: INVALID_ARGUMENT if it has no operation or a part is malformed.
  public init(_ message: Google_Firestore_V1_Write) throws(FirestoreError) {
    let operation: Operation
    switch message.operation {
    case .update(let document):
      operation = .update(try DocumentName(parsing: document.name), fields: try MapValue(document.fields))
    case .delete(let name): operation = .delete(try DocumentName(parsing: name))
    case .verify(let name): operation = .verify(try DocumentName(parsing: name))
    case .transform(let transform):
      operation = .transform(
        try DocumentName(parsing: transform.document), try [FieldTransform](transform.fieldTransforms))
    case nil: throw .invalidArgument("empty write operation")
    }
    self.init(
      operation, mask: message.hasUpdateMask ? try [FieldPath](message.updateMask) : nil,
      transforms: try [FieldTransform](message.updateTransforms),
      precondition: Precondition(message.currentDocument))
  }
}

extension [FieldTransform] {
  fileprivate init(
    _ messages: [Google_Firestore_V1_DocumentTransform.FieldTransform]
  ) throws(FirestoreError) {
    self.init()
    for message in messages { append(try FieldTransform(message)) }
  }
}

extension Google_Firestore_V1_Write {
  /// The message for a write.
  public init(_ write: Write) {
    self.init()
    switch write.operation {
    case .update(let name, let fields): update = Google_Firestore_V1_Document(name: name, fields: fields)
    case .delete(let name): delete = name.description
    case .verify(let name): verify = name.description
    case .transform(let name, let transforms):
      transform.document = name.description
      transform.fieldTransforms = transforms.map { .init($0) }
    }
    if let mask = write.mask { updateMask = Google_Firestore_V1_DocumentMask(mask) }
    updateTransforms = write.transforms.map { .init($0) }
    if let precondition = write.precondition {
      currentDocument = Google_Firestore_V1_Precondition(precondition)
    }
  }
}

extension WriteResult {
  /// The result in a message.
  public init(_ message: Google_Firestore_V1_WriteResult) throws(FirestoreError) {
    self.init(
      updateTime: message.hasUpdateTime ? Timestamp(message.updateTime) : nil,
      transformResults: try [Value](message.transformResults))
  }
}

extension Google_Firestore_V1_WriteResult {
  /// The message for a result.
  public init(_ result: WriteResult) {
    self.init()
    if let time = result.updateTime { updateTime = Google_Protobuf_Timestamp(time) }
    transformResults = result.transformResults.map { Google_Firestore_V1_Value($0) }
  }
}
