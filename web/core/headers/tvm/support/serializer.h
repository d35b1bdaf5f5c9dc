// Serializes values as TVM does: numbers in little-endian order, a text or list after its u64
// length.
#ifndef TVM_SUPPORT_SERIALIZER_H_
#define TVM_SUPPORT_SERIALIZER_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/string.h>
#include <tvm/support/io.h>

#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tvm::support {

template <typename T>
struct Serializer<T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>>> {
  static constexpr bool enabled = true;
  static void Write(Stream* stream, const T& value) {
    stream->Write(static_cast<const void*>(&value), sizeof(T));
  }
  static bool Read(Stream* stream, T* value) {
    return stream->Read(static_cast<void*>(value), sizeof(T)) == sizeof(T);
  }
};

template <>
struct Serializer<std::string> {
  static constexpr bool enabled = true;
  static void Write(Stream* stream, const std::string& value) {
    stream->Write<uint64_t>(value.size());
    stream->Write(static_cast<const void*>(value.data()), value.size());
  }
  static bool Read(Stream* stream, std::string* value) {
    uint64_t size = 0;
    if (!stream->Read(&size)) return false;
    value->resize(static_cast<size_t>(size));
    return stream->Read(static_cast<void*>(value->data()), value->size()) == size;
  }
};

// Serializes a type as another type that has a serializer.
template <typename T, typename As>
struct SerializedAs {
  static constexpr bool enabled = true;
  static void Write(Stream* stream, const T& value) {
    stream->Write(As(value.data(), value.size()));
  }
  static bool Read(Stream* stream, T* value) {
    As other;
    if (!stream->Read(&other)) return false;
    *value = T(other);
    return true;
  }
};
template <>
struct Serializer<ffi::String> : SerializedAs<ffi::String, std::string> {};
template <>
struct Serializer<ffi::Bytes> : SerializedAs<ffi::Bytes, std::string> {};

template <typename List, typename T>
struct SerializedList {
  static constexpr bool enabled = true;
  static void Write(Stream* stream, const List& list) {
    stream->Write<uint64_t>(list.size());
    for (const T& value : list) stream->Write<T>(value);
  }
  static bool Read(Stream* stream, List* list) {
    uint64_t size = 0;
    if (!stream->Read(&size)) return false;
    list->clear();
    for (uint64_t i = 0; i < size; ++i) {
      T value{};
      if (!stream->Read(&value)) return false;
      list->push_back(std::move(value));
    }
    return true;
  }
};
template <typename T>
struct Serializer<std::vector<T>> : SerializedList<std::vector<T>, T> {};
template <typename T>
struct Serializer<ffi::Array<T>> : SerializedList<ffi::Array<T>, T> {};

template <typename A, typename B>
struct Serializer<std::pair<A, B>> {
  static constexpr bool enabled = true;
  static void Write(Stream* stream, const std::pair<A, B>& value) {
    stream->Write(value.first);
    stream->Write(value.second);
  }
  static bool Read(Stream* stream, std::pair<A, B>* value) {
    return stream->Read(&value->first) && stream->Read(&value->second);
  }
};

template <typename K, typename V>
struct Serializer<std::unordered_map<K, V>> {
  static constexpr bool enabled = true;
  static void Write(Stream* stream, const std::unordered_map<K, V>& map) {
    stream->Write<uint64_t>(map.size());
    for (const auto& [key, value] : map) {
      stream->Write(key);
      stream->Write(value);
    }
  }
  static bool Read(Stream* stream, std::unordered_map<K, V>* map) {
    std::vector<std::pair<K, V>> list;
    if (!stream->Read(&list)) return false;
    map->clear();
    for (auto& [key, value] : list) map->emplace(std::move(key), std::move(value));
    return true;
  }
};

template <typename K, typename V>
struct Serializer<ffi::Map<K, V>> {
  static constexpr bool enabled = true;
  static void Write(Stream* stream, const ffi::Map<K, V>& map) {
    stream->Write<uint64_t>(map.size());
    for (const auto& [key, value] : map) {
      stream->Write(key);
      stream->Write(value);
    }
  }
  static bool Read(Stream* stream, ffi::Map<K, V>* map) {
    std::vector<std::pair<K, V>> list;
    if (!stream->Read(&list)) return false;
    *map = {};
    for (const auto& [key, value] : list) map->Set(key, value);
    return true;
  }
};

template <>
struct Serializer<DLDataType> {
  static constexpr bool enabled = true;
  static void Write(Stream* stream, const DLDataType& type) {
    stream->Write(type.code);
    stream->Write(type.bits);
    stream->Write(type.lanes);
  }
  static bool Read(Stream* stream, DLDataType* type) {
    return stream->Read(&type->code) && stream->Read(&type->bits) && stream->Read(&type->lanes);
  }
};

template <>
struct Serializer<DLDevice> {
  static constexpr bool enabled = true;
  static void Write(Stream* stream, const DLDevice& device) {
    stream->Write(static_cast<int32_t>(device.device_type));
    stream->Write(device.device_id);
  }
  static bool Read(Stream* stream, DLDevice* device) {
    int32_t type = 0;
    if (!stream->Read(&type)) return false;
    device->device_type = static_cast<DLDeviceType>(type);
    return stream->Read(&device->device_id);
  }
};

}  // namespace tvm::support

#endif  // TVM_SUPPORT_SERIALIZER_H_
