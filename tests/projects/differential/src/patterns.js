const CODE = /^[A-Z]{2}\d+$/;

export const isCode = (text) => CODE.test(text);

export const compact = (text) => text.replace(/\s+-\s*/g, '-');
