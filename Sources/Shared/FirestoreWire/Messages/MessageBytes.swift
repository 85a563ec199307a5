// Converts bytes of the model, which are arrays, to bytes of the generated messages, which are Foundation's `Data`.

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension [UInt8] {
  /// These bytes for a generated message.
  var messageBytes: Data { Data(self) }
}
