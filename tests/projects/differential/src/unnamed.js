export default function (text, mark = '-') {
  return mark + text.trim();
}
