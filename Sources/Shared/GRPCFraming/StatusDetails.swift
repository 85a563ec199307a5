// Encodes the machine-readable details of a status: `google.rpc.Status` in the trailer `grpc-status-details-bin`.
//
//     1 code | 2 message | 3 details: Any {1 type URL, 2 message}…
//     BadRequest {1 violations: {1 field, 2 description}…}   ErrorInfo {1 reason, 2 domain}

import JSON

extension GRPCStatus {
  /// Details of a status.
  public struct Details: Sendable, Hashable {
    /// An invalid field of the request.
    public struct FieldViolation: Sendable, Hashable {
      /// The path of the message that contains the field; empty for the request itself.
      public var field: String
      /// The description of the error.
      public var description: String

      /// Makes a violation.
      public init(field: String, description: String) {
        self.field = field
        self.description = description
      }
    }

    /// The invalid fields of the request.
    public var fieldViolations: [FieldViolation]
    /// The reason: a constant that the domain defines; empty for none.
    public var reason: String
    /// The domain that defines the reason.
    public var domain: String

    /// Makes details.
    public init(fieldViolations: [FieldViolation] = [], reason: String = "", domain: String = "") {
      self.fieldViolations = fieldViolations
      self.reason = reason
      self.domain = domain
    }

    /// Whether there are no details.
    public var isEmpty: Bool { fieldViolations.isEmpty && reason.isEmpty }

    /// The type URL of field violations.
    public static let badRequestType = "type.googleapis.com/google.rpc.BadRequest"
    /// The type URL of a reason.
    public static let errorInfoType = "type.googleapis.com/google.rpc.ErrorInfo"
  }

  /// The maximum bytes of the value of `grpc-status-details-bin`.
  static let maximumDetailsBytes = 3 << 10

  /// The value of `grpc-status-details-bin`; nil for a status without details, or with details over the limit.
  var detailsHeader: String? {
    guard !details.isEmpty else { return nil }
    var status: [UInt8] = [0x08, UInt8(truncatingIfNeeded: code.rawValue & 0x7F)]
    Self.append(2, Array(message.utf8), to: &status)
    if !details.fieldViolations.isEmpty {
      var request: [UInt8] = []
      for violation in details.fieldViolations {
        var part: [UInt8] = []
        if !violation.field.isEmpty { Self.append(1, Array(violation.field.utf8), to: &part) }
        Self.append(2, Array(violation.description.utf8), to: &part)
        Self.append(1, part, to: &request)
      }
      Self.append(Details.badRequestType, request, to: &status)
    }
    if !details.reason.isEmpty {
      var info: [UInt8] = []
      Self.append(1, Array(details.reason.utf8), to: &info)
      Self.append(2, Array(details.domain.utf8), to: &info)
      Self.append(Details.errorInfoType, info, to: &status)
    }
    guard status.count <= Self.maximumDetailsBytes / 4 * 3 else { return nil }
    // gRPC writes its binary metadata without padding.
    return Base64.encode(status, padded: false)
  }

  private static func append(_ type: String, _ message: [UInt8], to status: inout [UInt8]) {
    var any: [UInt8] = []
    append(1, Array(type.utf8), to: &any)
    append(2, message, to: &any)
    append(3, any, to: &status)
  }

  /// Appends a length-delimited field.
  private static func append(_ number: UInt8, _ content: [UInt8], to bytes: inout [UInt8]) {
    bytes.append(number << 3 | 2)
    var length = content.count
    while length >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: length) | 0x80)
      length >>= 7
    }
    bytes.append(UInt8(length))
    bytes += content
  }
}
